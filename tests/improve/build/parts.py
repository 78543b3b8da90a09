"""A plan on twelve pairs, each of whose trainings takes a fraction of a second, for the tests of builds."""

from __future__ import annotations

from pathlib import Path

from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.plan import Plan, load_plan
from manyheads.improve.build.runner import Builder
from manyheads.reports import NO_LISTENER, Listener

TEXT = """
source = "de"
target = "en"
root = "./"

[text.parallel]
de = "train.de"
en = "train.en"

[text.english]
en = "train.en"

[steps.backward]
kind = "train"
text = "parallel"
valid = "parallel"
data = { source = "en", target = "de", drop_overlap = false }
tokenizer = { kind = "characters" }
model = { d_model = 8, d_ff = 8, num_heads = 2, num_encoder_layers = 1, num_decoder_layers = 1 }
training = { steps = 2, batch_tokens = 60, valid_sentences = 0, device = "cpu" }
search = { max_length_ratio = 1, max_length_offset = 1 }

[steps.back]
kind = "translate"
model = "backward"
text = "english"
beam = 1
lines = 7

[steps.mixed]
kind = "mix"
text = [{ text = "parallel", lines = 5 }, { text = "back", tag = "<bt>" }]
"""


def write_plan(folder: Path, more: str = "") -> Path:
    """Write twelve pairs and the plan."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, word in (("de", "Hund"), ("en", "dog")):
        lines = (f"{word} {'ab'[number % 2]}{'cde'[number % 3]}{number}\n" for number in range(12))
        (folder / f"train.{language}").write_text("".join(lines), encoding="utf-8")
    path = folder / "plan.toml"
    path.write_text(TEXT + more, encoding="utf-8")
    return path


def plan_of(folder: Path, *overrides: str, more: str = "") -> Plan:
    """Write and load the plan."""
    return load_plan(write_plan(folder, more), folder / "out", overrides)


def builder_of(plan: Plan, listener: Listener = NO_LISTENER) -> Builder:
    """Return a builder on the CPU."""
    return Builder(BuildContext(plan, listener, "cpu"))


def reasons(builder: Builder) -> dict[str, str]:
    """Return the reason why each step must run, or its state."""
    return {name: status.text for name, status in builder.statuses().items()}


def write_lines(folder: Path, name: str, *lines: str) -> Path:
    """Write lines to a file, and return its path."""
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
