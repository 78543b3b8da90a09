"""The planted part of the doctor's trial: projects with one or two defects, and which of them the doctor names."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import torch
from benchmarks.doctor_trial.host_models import HOSTS, TRAINING
from benchmarks.doctor_trial.sound import PRECISIONS, examination_row

from specimens.planted import BOS, EOS, PAD, VOCABULARY, as_defects
from transformer_doctor import examine

MARKS: dict[str, Any] = {"pad": PAD, "bos": BOS, "eos": EOS, "longest": 128}
# Training defects of start and end marks, decoding and scoring, which a decoder-only project does not have.
NOT_FOR_DECODERS = {
    "no-start-symbol", "decodes-otherwise", "starts-otherwise", "end-never-trained", "teacher-forced-score",
    "evaluates-in-training-mode",
}  # fmt: skip
# Defects that hide most others: random scores show no dependence, and neither do mixed rows or failed training.
HIDES_OTHERS = {
    "random-in-evaluation", "rows-mixed", "depends-on-the-batch", "not-learned", "first-loss-too-high",
}  # fmt: skip
# Groups of defects of which a model can have only one: each removes the code that holds the others.
EXCLUDING_GROUPS: tuple[set[str], ...] = (
    {"no-positions", "wrong-sinusoids", "position-limit"},
    {"sees-the-future", "mask-fill", "padding-mask-on-queries"},
    {"unusual-scale", "scaled-by-model-width"},
    {"mask-as-value", "source-not-read", "no-source-padding-mask", "parameters-without-gradient"},
    {"target-not-shifted", "wrong-labels", "end-fed-to-decoder", "no-start-symbol", "end-never-trained"},
    {"padding-mask-on-queries", "no-source-padding-mask", "padding-row-trained"},
    {"starts-otherwise", "no-start-symbol"},
)
# Defects that are consequences, and the cause that is named instead.
CAUSES = {"padding-row-trained": "no-source-padding-mask"}
# Defects of the model that only a training step shows.
SHOWN_BY_TRAINING = {
    "parameters-without-gradient",
    "first-loss-too-high",
    "padding-row-trained",
    "scores-are-probabilities",
}


def names(pairs: bool = False) -> list[str]:
    """Return the names of the cases: host, defects with "+" between them, and precision."""
    alone = [(host, (defect,)) for host in HOSTS for defect in possible_defects(host)]
    both = [(host, pair) for host in HOSTS for pair in pairs_of(host)] if pairs else []
    sound = [(host, ()) for host in HOSTS]
    return [
        f"{host} {'+'.join(defects) or 'sound'} {precision}"
        for (host, defects), precision in product([*sound, *alone, *both], ("float32", "bfloat16"))
    ]


def possible_defects(host: str) -> list[str]:
    """Return the defects that can be planted in a host."""
    training = [name for name in TRAINING if host != "decoder" or name not in NOT_FOR_DECODERS]
    return [*HOSTS[host][2], *training]


def pairs_of(host: str) -> list[tuple[str, str]]:
    """Return pairs of each new defect and two old ones that a host can have together."""
    old = [name for name in possible_defects(host) if any(isinstance(defect, int) for defect in as_defects([name]))]
    new = [name for name in possible_defects(host) if name not in old and finding_name(name) not in HIDES_OTHERS]
    pairs = []
    for index, first in enumerate(new):
        fitting = [
            second
            for second in old
            if not any({finding_name(first), second} <= group for group in EXCLUDING_GROUPS)
        ]
        pairs += [(first, fitting[(step * index + index) % len(fitting)]) for step in (1, 4)]
    return list(dict.fromkeys(pairs))


def finding_name(defect: str) -> str:
    """Return the name of the finding of a defect."""
    return defect.partition("/")[0]


def planted_case(name: str) -> list[dict[str, Any]]:
    """Return the row of a host examined with its defects and with all functions of its project."""
    host, joined, precision = name.split(" ")
    defects = () if joined == "sound" else tuple(joined.split("+"))
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
    return [{**row, **named_and_missed(row, defects), "seconds": time.perf_counter() - start}]


def named_and_missed(row: dict[str, Any], defects: tuple[str, ...]) -> dict[str, Any]:
    """Return the defects that were missed, further findings, and whether any finding was made."""
    every = {name for name, _, _ in row.get("found", [])}
    strong = {name for name, severity, _ in row.get("found", []) if severity != "note"}
    wanted = {defect: {finding_name(defect), CAUSES.get(defect, defect)} for defect in defects}
    return {
        "missed": [defect for defect, good in wanted.items() if not good & every],
        "beside": sorted(strong - set().union(*wanted.values())),
        "noticed": bool(strong or any(good & every for good in wanted.values())),
    }
