"""The files that the pages of the documentation name: text, runs, and models of other programs, all tiny.

The built-in grammars generate the text, the runs are trained for two steps, and the models of transformers have
random weights.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from tests.interop.marian import write_marian_folder
from tests.interop.pretrained import write_folder
from tests.runs.language import PLAY

from bitext.catalogue import Corpus, RemoteFile
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.load.toml import read_toml, to_toml
from manyheads.data.builtin import builtin_pairs
from manyheads.errors import ManyheadsError
from manyheads.improve.build.plan import resolve_plan
from manyheads.runs.train import train
from manyheads.serving.keys import KeyFile

# Settings that shorten a training from an hour to seconds; all others are those of the page.
SMALL = (
    "training.steps=2",
    "training.epochs=none",
    "training.max_minutes=none",
    "training.save_every=2",
    "training.valid_sentences=2",
    "training.batch_tokens=500",
    "training.precision=fp32",
    "training.device=cpu",
    "model.d_model=16",
    "model.d_ff=16",
    "model.num_heads=2",
    "search.max_length_ratio=0.3",
    "search.max_length_offset=3",
)
SMALL_TEXT = "data.limit=200"  # pairs
WITH_CONFIDENCE = "training.valid_sentences=20"  # enough for a model of the confidence, which runs of `demo` have
SMALL_SUBWORDS = "tokenizer.vocab_size=700"

TRANSLATION = """\
task = "translation"
[data]
root = "data/multi30k"
source = "{source}"
target = "{target}"
train = "train"
valid = "val"
test = "test_2016_flickr"
[model]
d_model = 16
d_ff = 16
num_heads = 2
norm = "{norm}"
activation = "relu"
tied_embeddings = "all"
[training]
epochs = 10
"""
LANGUAGE_MODEL = """\
task = "language-modeling"
[data]
root = "data/tinyshakespeare"
language = "en"
train = "input"
valid = 0.1
"""
CLASSIFIER = """\
task = "classification"
[data]
root = "data/sst2"
language = "en"
train = "train"
valid = "dev"
[model]
pooling = "cls"
"""
CONFIGURATIONS = {
    "my.toml": TRANSLATION.format(source="de", target="en", norm="pre"),
    "small.toml": TRANSLATION.format(source="en", target="de", norm="pre"),
    "post-norm.toml": TRANSLATION.format(source="de", target="en", norm="post"),
    "mine.toml": LANGUAGE_MODEL,
    "classifier.toml": CLASSIFIER,
}
PLAN = """\
source = "de"
target = "en"
root = "data/multi30k"
[text.parallel]
de = "train.de"
en = "train.en"
[text.valid]
de = "val.de"
en = "val.en"
[steps.student]
kind = "train"
text = "parallel"
valid = "valid"
tokenizer = { kind = "characters" }
model = { d_model = 8, d_ff = 8, num_heads = 2, num_encoder_layers = 1, num_decoder_layers = 1 }
training = { steps = 2, batch_tokens = 200, valid_sentences = 0 }
search = { max_length_ratio = 1, max_length_offset = 1 }
[steps.scores]
kind = "evaluate"
model = "student"
text = "valid"
"""
# Files that are not plain files of lines.
DOWNLOADS = {
    "memory.tmx": '<tmx version="1.4"><header srclang="de"/><body><tu><tuv xml:lang="de"><seg>Ja.</seg></tuv>'
    '<tuv xml:lang="en"><seg>Yes.</seg></tuv></tu></body></tmx>\n',
    "table.csv": "German,English\nJa.,Yes.\n",
    "plan.toml": PLAN,
    "suggestions.jsonl": '{"time": "2026-01-01T00:00:00Z", "languages": ["de", "en"], "source": "Der Hund bellt.", '
    '"output": "The dog.", "correction": "The dog barks.", "key": null}\n',
}
# Models of the user `somebody` of the hub.
ON_THE_HUB = {"sentiment": "runs/sentiment", "plays": "runs/writer", "encoder": "models/minilm"}
# Input lines, and companion files with constraints.
TEXTS = {
    "text.de": ["Ein Hund läuft durch den Schnee.", "", "Ein Mann mit Hut spielt Gitarre."],
    "film.de.srt": [
        "1",
        "00:00:01,000 --> 00:00:02,500",
        "Ein Hund läuft",
        "",
        "2",
        "00:00:02,600 --> 00:00:04,000",
        "durch den Schnee.",
    ],
    "news.html": ["<html><p>Ein <b>Hund</b> läuft durch den Schnee.</p></html>"],
    "handbook/index.md": ["# Ein Hund", "", "Ein *Mann* mit Hut spielt Gitarre."],
    "text.ko": ["고양이가 잔다.", "저는 학생입니다."],
    "corrections.tsv": [
        "Das Rathaus ist geschlossen.\tThe town hall is closed.",
        "Wo ist das Rathaus?\tWhere is the town hall?",
        "Unser Rathaus ist alt.\tOur town hall is old.",
        "Am Montag ist das Rathaus geschlossen.\tOn Monday the town hall is closed.",
        "Anna arbeitet im Rathaus.\tAnna works at the town hall.",
        "Ich warte vor dem Rathaus.\tI am waiting in front of the town hall.",
    ],
    "monolingual.de": ["Der Hund schläft.", "Eine Frau liest."],
    "beginnings.en": ["A dog", "", ""],
    "unwanted.en": ["cat\tdogs", "", "woman"],
    "wanted.en": ["snow", "", "hat"],
    "terms.tsv": ["Hund\tpuppy", "Schnee\tsnow"],
    "letter.de": ["Liebe Anna, am 3. Mai kommt Dr. Meier. Er bringt z. B. Brot mit! Kommst du auch?"],
    "beginning.txt": ["ANNA:", "Who goes there?"],
    "new.txt": ["BERT:", "It is I, the moon."],
}


def small(config: str, *overrides: str) -> list[str]:
    """Return the settings that make the training of a configuration small; none if the name is no configuration."""
    try:
        found = load_config(resolve_recipe(config))
    except ManyheadsError:
        return []
    text = [SMALL_TEXT] if found.task == "translation" else []
    subwords = [SMALL_SUBWORDS] if found.tokenizer.kind in ("bpe", "unigram") else []
    return [*SMALL, *text, *subwords, *overrides]


def small_plan(plan: str) -> list[str]:
    """Return the settings that make the trainings of a plan small."""
    settings = []
    for name, step in read_toml(resolve_plan(plan))["steps"].items():
        if step["kind"] in ("train", "fine-tune"):
            chosen = [*SMALL, *(["tokenizer.vocab_size=900"] if "config" in step else [])]
            stages = step.get("training", {}).get("stages", [])
            if stages:
                chosen.append(f"training.stages={to_toml([{**stages[0], 'steps': 1}, *stages[1:]])}")
            settings += [f"steps.{name}.{setting}" for setting in chosen]
    return settings


class PageFiles:
    """The files of all pages, and copies of those that a page names.

    Attributes:
        root: the folder of all others.
        complete: the folder that holds all files.
        hub: the folder that replaces the Hugging Face hub.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.complete, self.hub = root, root / "complete", root / "hub"
        self.complete.mkdir()
        write_texts(self.complete)
        write_models(self.complete, self.hub)
        with chdir(self.complete):
            train_runs()
        for name, model in ON_THE_HUB.items():
            shutil.copytree(self.complete / model, self.hub / "somebody" / name)

    def copy_named(self, name: str, text: str, mine: str | None = None) -> Path:
        """Create a folder with copies of the files that a page names.

        Args:
            name: the name of the folder.
            text: the text of the page.
            mine: the run that is copied to `runs/mine`.
        """
        folder = self.root / name
        known = [
            *CONFIGURATIONS,
            *DOWNLOADS,
            *TEXTS,
            "tatoeba.ko",
            "tatoeba.en",
            "corpus.de",
            "corpus.en",
            "reviews.txt",
            "my-text",
            "handbook",
        ]
        known += [path.relative_to(self.complete).as_posix() for path in self.models()]
        copies = {name: name for name in known if name in text} | ({"runs/mine": mine} if mine else {})
        shutil.copytree(self.complete / "data", folder / "data")
        for target, original in copies.items():
            self.copy(folder, target, original)
        return folder

    def copy(self, folder: Path, name: str, original: str) -> None:
        """Copy a file or folder of `complete` into a folder, unless the name exists there."""
        target, source = folder / name, self.complete / original
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)

    def models(self) -> list[Path]:
        """Return the runs, and the models of other programs."""
        return [path for kind in ("runs", "models", "downloads") for path in (self.complete / kind).iterdir()]

    def multi30k(self, address: str) -> Corpus:
        """Return the corpus Multi30k, to be fetched from an address that serves `complete`."""
        files = [
            RemoteFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
            for path in sorted((self.complete / "data" / "multi30k").iterdir())
        ]
        return Corpus("multi30k", "a small one", "none", (f"{address}/data/multi30k/{{name}}",), tuple(files))


def some_pairs(name: str) -> list[tuple[str, str]]:
    """Return 360 pairs of a built-in corpus."""
    source, target = name.split("-")
    pairs = builtin_pairs(name, "test", source=source, target=target)[:360]
    return [(pair.source, pair.target) for pair in pairs]


def write_pairs(
    folder: Path, stem: str, name: str, pairs: Sequence[tuple[str, str]], compressed: bool = True
) -> None:
    """Write the two files of a split; `name` is that of a built-in corpus, such as "de-en"."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(name.split("-")):
        content = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        path = folder / f"{stem}.{language}"
        if compressed:
            path = path.with_name(f"{path.name}.gz")
            content = gzip.compress(content, mtime=0)
        path.write_bytes(content)


def write_texts(folder: Path) -> None:
    """Write corpora under the names of public ones, files of lines, and configurations."""
    pictures, korean = some_pairs("de-en"), some_pairs("ko-en")
    splits = [("train", pictures[:300]), ("valid", pictures[300:330]), ("test", pictures[330:])]
    for (split, part), name in zip(splits, ("train", "val", "test_2016_flickr"), strict=True):
        write_pairs(folder / "data" / "multi30k", name, "de-en", part)
        write_pairs(folder / "my-text", split, "de-en", part, compressed=False)
    write_pairs(folder, "tatoeba", "ko-en", korean, compressed=False)
    write_pairs(folder, "corpus", "de-en", pictures, compressed=False)
    write_pairs(folder / "data" / "ko-en", "train", "ko-en", korean[:300])
    odd = ("쥐가 찢었다.", "~ The mouse tore it; ^")
    write_pairs(folder / "data" / "ko-en", "valid", "ko-en", [*korean[300:], odd])
    sentences = [english for _, english in pictures]
    (folder / "data" / "sst2").mkdir()
    for split, part in (("train", sentences[60:]), ("dev", sentences[:60])):
        content = "".join(f"{number % 2}\t{text}\n" for number, text in enumerate(part)).encode()
        (folder / "data" / "sst2" / f"{split}.tsv.gz").write_bytes(gzip.compress(content, mtime=0))
    (folder / "reviews.txt").write_text("".join(f"{text}\n" for text in sentences), encoding="utf-8")
    (folder / "data" / "tinyshakespeare").mkdir()
    (folder / "data" / "tinyshakespeare" / "input.txt").write_text(PLAY * 3, encoding="utf-8")
    KeyFile(folder / "keys.json").add("weblate", None)
    for name, lines in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name, content in (CONFIGURATIONS | DOWNLOADS).items():
        (folder / name).write_text(content, encoding="utf-8")


def write_models(folder: Path, hub: Path) -> None:
    """Write models of transformers with random weights, under the names of real ones on the pages."""
    write_folder(folder / "models" / "minilm", "bert")
    write_folder(folder / "models" / "bert-sst2", "bert", "classification", num_labels=2)
    write_folder(folder / "models" / "gpt2", "gpt2", "language-modeling", n_positions=256)
    write_marian_folder(folder / "downloads" / "opus-mt-de-en")
    shutil.copytree(folder / "downloads" / "opus-mt-de-en", hub / "Helsinki-NLP" / "opus-mt-de-en")


def train_runs() -> None:
    """Train the runs that the pages assume, in the current directory."""
    for config, out, overrides in (
        ("multi30k-de-en", "multi30k-de-en", ()),
        ("multi30k-de-en", "demo-de-en", (WITH_CONFIDENCE,)),
        ("multi30k-en-de", "multi30k-en-de", ("training.steps=5", "training.save_every=1")),
        ("post-norm.toml", "post-norm", ()),
        ("mine.toml", "writer", ("tokenizer.kind=characters", "data.max_length=32")),
        ("classifier.toml", "fine-tuned", ("model.init_from=models/bert-sst2",)),
    ):
        train(load_config(resolve_recipe(config), small(config, *overrides)), Path("runs") / out)
    card = Path("runs/multi30k-de-en/README.md")
    card.write_text(card.read_text(encoding="utf-8").replace("license:", "license: cc0-1.0", 1), encoding="utf-8")
    for copy in ("demo-ko-en", "one", "two", "three", "adam", "muon"):
        shutil.copytree("runs/multi30k-de-en", f"runs/{copy}")
    shutil.copytree("runs/multi30k-en-de", "runs/large")
    for copy in ("sentiment", "sst2-scratch"):
        shutil.copytree("runs/fine-tuned", f"runs/{copy}")
    shutil.copytree("runs/writer", "runs/shakespeare-char")
