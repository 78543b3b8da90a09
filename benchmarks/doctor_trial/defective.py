"""The planted part of the doctor's trial: projects with a defect, and whether the doctor names it."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import torch
from benchmarks.doctor_trial.host_models import HOSTS, TRAINING
from benchmarks.doctor_trial.sound import PRECISIONS, examination_row, judged

from specimens.planted import BOS, EOS, PAD, VOCABULARY
from transformer_doctor import examine

MARKS: dict[str, Any] = {"pad": PAD, "bos": BOS, "eos": EOS, "longest": 128}
# Training defects of start and end marks, decoding and scoring, which a decoder-only project does not have.
NOT_FOR_DECODERS = {
    "no-start-symbol", "decodes-otherwise", "starts-otherwise", "end-never-trained", "teacher-forced-score",
    "evaluates-in-training-mode",
}  # fmt: skip
# Defects that are consequences, and the cause that is named instead.
CAUSES = {"padding-row-trained": "no-source-padding-mask"}
# Defects of the model that only a training step shows.
SHOWN_BY_TRAINING = {
    "parameters-without-gradient",
    "first-loss-too-high",
    "padding-row-trained",
    "scores-are-probabilities",
    "target-not-shifted/tied",
}


def names() -> list[str]:
    """Return the names of the cases: host, defect or "sound", and precision."""
    alone = [f"{host} {defect}" for host in HOSTS for defect in ("sound", *possible_defects(host))]
    return [f"{case} {precision}" for case, precision in product(alone, ("float32", "bfloat16"))]


def possible_defects(host: str) -> list[str]:
    training = [name for name in TRAINING if host != "decoder" or name not in NOT_FOR_DECODERS]
    return [*HOSTS[host][2], *training]


def planted_case(name: str) -> list[dict[str, Any]]:
    """Return the row of a host examined with its defect and with all functions of its project."""
    host, defect, precision = name.split(" ")
    defects = () if defect == "sound" else (defect,)
    make, make_trainer, _ = HOSTS[host]
    torch.manual_seed(5)
    model = make(*defects).to(PRECISIONS[precision])
    rate = 1e-2 if precision == "float32" else 1e-3
    trainer = make_trainer(model, *defects, rate=rate)
    needs_training = set(defects) & set(TRAINING) or not defects  # the other defects show without training
    options: dict[str, Any] = {"vocab_size": getattr(model, "sizes", VOCABULARY)}
    if host == "annotated":
        options["masks"] = model.masks
    if host == "decoder":
        options["kind"] = "decoder"
    if needs_training or set(defects) & SHOWN_BY_TRAINING:
        options |= {"train_step": trainer.step, "collate": trainer.collate}
    if needs_training and host != "decoder":
        options |= {"greedy": trainer.greedy, "score": trainer.score}
    subject = model if host != "decoder" else (lambda target: model(target)[0])
    start = time.perf_counter()
    row = examination_row(lambda: examine(subject, **options, **MARKS))
    wanted = {name for defect in defects for name in (defect.partition("/")[0], CAUSES.get(defect, defect))}
    return [{**row, **judged(row, wanted), "seconds": time.perf_counter() - start}]
