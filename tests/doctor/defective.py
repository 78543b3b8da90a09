"""The planted part of the doctor's trial: projects with one defect or two, and what the doctor names of them."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import torch
from tests.doctor.host_models import HOSTS, TRAINING
from tests.doctor.planted import BOS, EOS, PAD, VOCABULARY, as_defects
from tests.doctor.sound import PRECISIONS, looked

from manyheads.doctor import examine

MARKS: dict[str, Any] = {"pad": PAD, "bos": BOS, "eos": EOS, "longest": 128}
# Of decoders: marks around a text, and how another text is decoded and scored.
NOT_FOR_DECODERS = {
    "no-start-symbol", "decodes-otherwise", "starts-otherwise", "end-never-trained", "teacher-forced-score",
    "evaluates-in-training-mode",
}  # fmt: skip
# Scores that vary by chance show no dependence; what mixes the rows, or trains nothing, hides most of the others.
HIDES_OTHERS = {
    "random-in-evaluation", "rows-mixed", "depends-on-the-batch", "not-learned", "first-loss-too-high",
}  # fmt: skip
# Defects of which one takes away what the other stands in.
TOGETHER: tuple[set[str], ...] = (
    {"no-positions", "wrong-sinusoids", "position-limit"},
    {"sees-the-future", "mask-fill", "padding-mask-on-queries"},
    {"unusual-scale", "scaled-by-model-width"},
    {"mask-as-value", "source-not-read", "no-source-padding-mask", "parameters-without-gradient"},
    {"target-not-shifted", "wrong-labels", "end-fed-to-decoder", "no-start-symbol", "end-never-trained"},
    {"padding-mask-on-queries", "no-source-padding-mask", "padding-row-trained"},
    {"starts-otherwise", "no-start-symbol"},
)
# The cause that is named in the place of its consequence.
CAUSES = {"padding-row-trained": "no-source-padding-mask"}
# Defects of the model that only a training step shows.
TAUGHT = {"parameters-without-gradient", "first-loss-too-high", "padding-row-trained", "scores-are-probabilities"}


def names(pairs: bool = False) -> list[str]:
    """Return the names of the cases: host, defects with "+" between them, and precision."""
    alone = [(host, (defect,)) for host in HOSTS for defect in possible(host)]
    both = [(host, pair) for host in HOSTS for pair in pairs_of(host)] if pairs else []
    sound = [(host, ()) for host in HOSTS]
    return [
        f"{host} {'+'.join(defects) or 'sound'} {precision}"
        for (host, defects), precision in product([*sound, *alone, *both], ("float32", "bfloat16"))
    ]


def possible(host: str) -> list[str]:
    """Return the defects that can be planted in a host."""
    training = [name for name in TRAINING if host != "decoder" or name not in NOT_FOR_DECODERS]
    return [*HOSTS[host][2], *training]


def pairs_of(host: str) -> list[tuple[str, str]]:
    """Return pairs of each new defect and two old ones that a host can have together."""
    old = [name for name in possible(host) if any(isinstance(defect, int) for defect in as_defects([name]))]
    new = [name for name in possible(host) if name not in old and plain(name) not in HIDES_OTHERS]
    pairs = []
    for index, first in enumerate(new):
        fitting = [second for second in old if not any({plain(first), second} <= group for group in TOGETHER)]
        pairs += [(first, fitting[(step * index + index) % len(fitting)]) for step in (1, 4)]
    return list(dict.fromkeys(pairs))


def plain(defect: str) -> str:
    """Return the name of the finding of a defect."""
    return defect.partition("/")[0]


def planted_case(name: str) -> list[dict[str, Any]]:
    """Examine a host with its defects, with everything that its project has."""
    host, joined, precision = name.split(" ")
    defects = () if joined == "sound" else tuple(joined.split("+"))
    make, make_course, _ = HOSTS[host]
    torch.manual_seed(5)
    model = make(*defects).to(PRECISIONS[precision])
    rate = 1e-2 if precision == "float32" else 1e-3
    course = make_course(model, *defects, rate=rate)
    taught = set(defects) & set(TRAINING) or not defects  # the other defects show without
    options: dict[str, Any] = {"vocab_size": getattr(model, "sizes", VOCABULARY)}
    if host == "annotated":
        options["masks"] = model.masks
    if host == "decoder":
        options["kind"] = "decoder"
    if taught or set(defects) & TAUGHT:
        options |= {"train_step": course.step, "collate": course.collate}
    if taught and host != "decoder":
        options |= {"greedy": course.greedy, "score": course.score}
    subject = model if host != "decoder" else (lambda target: model(target)[0])
    start = time.perf_counter()
    row = looked(lambda: examine(subject, **options, **MARKS))
    return [{**row, **judged(row, defects), "seconds": time.perf_counter() - start}]


def judged(row: dict[str, Any], defects: tuple[str, ...]) -> dict[str, Any]:
    """Return which defects were named, and whether anything was noticed."""
    every = {name for name, _, _ in row.get("found", [])}
    strong = {name for name, severity, _ in row.get("found", []) if severity != "note"}
    wanted = {defect: {plain(defect), CAUSES.get(defect, defect)} for defect in defects}
    return {
        "missed": [defect for defect, good in wanted.items() if not good & every],
        "beside": sorted(strong - set().union(*wanted.values())),
        "noticed": bool(strong or any(good & every for good in wanted.values())),
    }
