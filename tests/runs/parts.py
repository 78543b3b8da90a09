"""A parallel corpus of 48 tiny sentences, and a configuration that trains on it within seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.training.parts import CollectingListener

from manyheads.config.schema import Config
from manyheads.runs.train import train

SUBJECTS = {"der Hund": "the dog", "die Katze": "the cat", "ein Kind": "a child", "der Mann": "the man",
            "eine Frau": "a woman", "das Pferd": "the horse"}  # fmt: skip
VERBS = {"läuft": "runs", "schläft": "sleeps", "singt": "sings", "liest": "reads", "spielt": "plays",
         "lacht": "laughs", "springt gern": "likes to jump", "isst heute Brot": "eats bread today"}  # fmt: skip
SENTENCES = [
    (f"{german} {verb}", f"{english} {done}")
    for german, english in SUBJECTS.items()
    for verb, done in VERBS.items()
]


def write_split(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    folder.mkdir(exist_ok=True)
    for index, language in enumerate(("de", "en")):
        text = "".join(f"{pair[index]}\n" for pair in pairs)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def write_corpus(folder: Path) -> Path:
    """Write 36 training, 6 validation and 6 test pairs; no pair occurs twice."""
    mixed = SENTENCES[::5] + SENTENCES[1::5] + SENTENCES[2::5] + SENTENCES[3::5] + SENTENCES[4::5]
    write_split(folder, "train", mixed[:36])
    write_split(folder, "valid", mixed[36:42])
    write_split(folder, "test", mixed[42:])
    return folder


def make_config(root: Path, **sections: dict[str, Any]) -> Config:
    """Return a configuration: D = 16, 1 + 1 layers, 12 steps, a checkpoint every 4."""
    values: dict[str, dict[str, Any]] = {
        "data": {"root": str(root), "source": "de", "target": "en", "test": "test"},
        "tokenizer": {"kind": "bpe", "vocab_size": 70},
        "model": {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
        "training": {
            "steps": 12, "batch_tokens": 60, "learning_rate": 0.01, "warmup_steps": 3, "precision": "fp32",
            "device": "cpu", "save_every": 4, "log_every": 3, "valid_sentences": 3,
        },
        "search": {"beam_size": 2},
    }  # fmt: skip
    for name, section in sections.items():
        values[name] = values[name] | section
    return Config.model_validate(values)


def configure(run: Path, section: str, **settings: Any) -> Path:
    """Change settings of a section in the config.json of a run; return the run."""
    path = run / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content[section] |= settings
    path.write_text(json.dumps(content), encoding="utf-8")
    return run


class Interrupting(CollectingListener):
    """A listener that raises KeyboardInterrupt at the first log point or validation from a step on."""

    def __init__(self, *, step: int = 10**9, validation: int = 10**9) -> None:
        super().__init__()
        self.last_step = step
        self.last_validation = validation

    def step(self, report: Any) -> None:
        super().step(report)
        if report.step >= self.last_step:
            raise KeyboardInterrupt

    def validation(self, report: Any) -> None:
        super().validation(report)
        if report.step >= self.last_validation:
            raise KeyboardInterrupt


def training_report(config: Config, out: Path, start: str) -> str:
    """Train, and return the only message that begins with `start`."""
    listener = CollectingListener()
    train(config, out, listener=listener)
    (report,) = [message for message in listener.messages if message.startswith(start)]
    return report


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


TIMINGS = {"seconds", "seconds_left", "source_tokens_per_second", "target_tokens_per_second"}


def metrics(run: Path) -> list[dict[str, Any]]:
    """Return the records of metrics.jsonl without the values that depend on the clock."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    records = [json.loads(line, parse_constant=refuse_constant) for line in lines]
    return [{key: value for key, value in record.items() if key not in TIMINGS} for record in records]


def train_well(folder: Path, seed: int) -> Path:
    """Train a run that translates the sentences of `write_corpus` well."""
    training = {"steps": 250, "save_every": 250, "batch_tokens": 200, "seed": seed, "valid_sentences": 0}
    config = make_config(write_corpus(folder / "text"), model={"d_model": 32, "d_ff": 64}, training=training)
    train(config, folder / "run")
    return folder / "run"


def write_languages(folder: Path) -> Path:
    """Write the corpus of `write_corpus` with a third language: English words read backwards, "fr"."""
    write_corpus(folder)
    for split in ("train", "valid", "test"):
        lines = (folder / f"{split}.en").read_text(encoding="utf-8").splitlines()
        backwards = (" ".join(word[::-1] for word in line.split()) for line in lines)
        (folder / f"{split}.fr").write_text("".join(f"{line}\n" for line in backwards), encoding="utf-8")
    return folder


def make_languages_config(root: Path, **sections: dict[str, Any]) -> Config:
    """Return `make_config` of the directions en-de, de-en and en-fr."""
    pairs = [{"source": "en", "target": "de", "both": True}, {"source": "en", "target": "fr"}]
    data = {"source": "", "target": "", "pairs": pairs} | sections.pop("data", {})
    tokenizer = {"vocab_size": 110} | sections.pop("tokenizer", {})
    return make_config(root, data=data, tokenizer=tokenizer, **sections)
