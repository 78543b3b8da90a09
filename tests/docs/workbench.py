"""A folder with everything that the pages of the book name: text, runs, and models of other programs, all tiny.

The text is made by the built-in grammars, the runs are trained for two steps, the models of transformers are
random.
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

from manyheads.build.plan import resolve_plan
from manyheads.config.load import load_config, resolve_recipe, to_toml
from manyheads.config.load.toml import read_toml
from manyheads.data.builtin import builtin_pairs
from manyheads.data.catalogue import Corpus, RemoteFile
from manyheads.errors import ManyheadsError
from manyheads.runs.train import train
from manyheads.serving.keys import KeyFile

__all__ = ["SMALL", "SMALL_SUBWORDS", "Workbench", "small", "small_plan"]

# What would take an hour takes a moment: the only settings in which a test differs from what a page says.
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
# What was downloaded, in other forms than files of lines.
DOWNLOADS = {
    "memory.tmx": '<tmx version="1.4"><header srclang="de"/><body><tu><tuv xml:lang="de"><seg>Ja.</seg></tuv>'
    '<tuv xml:lang="en"><seg>Yes.</seg></tuv></tu></body></tmx>\n',
    "table.csv": "German,English\nJa.,Yes.\n",
    "plan.toml": PLAN,
}
ON_THE_HUB = {"sentiment": "runs/sentiment", "plays": "runs/writer", "encoder": "models/minilm"}  # of somebody
# Lines for the translator, and what is asked of each.
TEXTS = {
    "text.de": ["Ein Hund läuft durch den Schnee.", "", "Ein Mann mit Hut spielt Gitarre."],
    "text.ko": ["고양이가 잔다.", "저는 학생입니다."],
    "monolingual.de": ["Der Hund schläft.", "Eine Frau liest."],
    "beginnings.en": ["A dog", "", ""],
    "unwanted.en": ["cat\tdogs", "", "woman"],
    "wanted.en": ["snow", "", "hat"],
    "letter.de": ["Liebe Anna, am 3. Mai kommt Dr. Meier. Er bringt z. B. Brot mit! Kommst du auch?"],
    "beginning.txt": ["ANNA:", "Who goes there?"],
    "new.txt": ["BERT:", "It is I, the moon."],
}


def small(config: str, *overrides: str) -> list[str]:
    """The settings that make the training of a configuration small; none for what is no configuration."""
    try:
        found = load_config(resolve_recipe(config))
    except ManyheadsError:
        return []
    text = [SMALL_TEXT] if found.task == "translation" else []
    subwords = [SMALL_SUBWORDS] if found.tokenizer.kind in ("bpe", "unigram") else []
    return [*SMALL, *text, *subwords, *overrides]


def small_plan(plan: str) -> list[str]:
    """The settings that make the trainings of a plan small."""
    settings = []
    for name, step in read_toml(resolve_plan(plan))["steps"].items():
        if step["kind"] in ("train", "fine-tune"):
            chosen = [*SMALL, *(["tokenizer.vocab_size=900"] if "config" in step else [])]
            stages = step.get("training", {}).get("stages", [])
            if stages:
                chosen.append(f"training.stages={to_toml([{**stages[0], 'steps': 1}, *stages[1:]])}")
            settings += [f"steps.{name}.{setting}" for setting in chosen]
    return settings


class Workbench:
    """The folder, and a copy of what each page names.

    Attributes:
        root: where all of it is.
        whole: has everything.
        shelf: stands for the hub.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.whole, self.shelf = root, root / "whole", root / "hub"
        self.whole.mkdir()
        write_texts(self.whole)
        write_models(self.whole, self.shelf)
        with chdir(self.whole):
            train_runs()
        for name, model in ON_THE_HUB.items():
            shutil.copytree(self.whole / model, self.shelf / "somebody" / name)

    def bench(self, name: str, text: str, mine: str | None = None) -> Path:
        """A new folder with what a text names, each in a copy.

        Args:
            name: of the folder.
            text: of the page.
            mine: what `runs/mine` is.
        """
        folder = self.root / name
        there = [
            *CONFIGURATIONS,
            *DOWNLOADS,
            *TEXTS,
            "tatoeba.ko",
            "tatoeba.en",
            "corpus.de",
            "corpus.en",
            "reviews.txt",
            "my-text",
        ]
        there += [path.relative_to(self.whole).as_posix() for path in self.models()]
        copies = {one: one for one in there if one in text} | ({"runs/mine": mine} if mine else {})
        shutil.copytree(self.whole / "data", folder / "data")
        for here, original in copies.items():
            self.place(folder, here, original)
        return folder

    def place(self, folder: Path, name: str, original: str) -> None:
        """Copy something of `whole` into a folder, unless there is something of this name."""
        here, there = folder / name, self.whole / original
        if not here.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if there.is_dir() else shutil.copy2)(there, here)

    def models(self) -> list[Path]:
        """The runs, and the models of other programs."""
        return [path for kind in ("runs", "models", "downloads") for path in (self.whole / kind).iterdir()]

    def multi30k(self, address: str) -> Corpus:
        """The corpus as it would be fetched from an address at which `whole` is served."""
        files = [
            RemoteFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
            for path in sorted((self.whole / "data" / "multi30k").iterdir())
        ]
        return Corpus("multi30k", "a small one", "none", (f"{address}/data/multi30k/{{name}}",), tuple(files))


def some_pairs(name: str) -> list[tuple[str, str]]:
    """360 of a built-in corpus."""
    source, target = name.split("-")
    pairs = builtin_pairs(name, "test", source=source, target=target)[:360]
    return [(pair.source, pair.target) for pair in pairs]


def write_pairs(folder: Path, stem: str, name: str, pairs: Sequence[tuple[str, str]], packed: bool = True) -> None:
    """The two files of a split; `name` is that of a built-in corpus, as "de-en"."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, language in enumerate(name.split("-")):
        content = "".join(f"{pair[place]}\n" for pair in pairs).encode()
        path = folder / f"{stem}.{language}"
        if packed:
            path = path.with_name(f"{path.name}.gz")
            content = gzip.compress(content, mtime=0)
        path.write_bytes(content)


def write_texts(folder: Path) -> None:
    """Corpora under the names of public ones, files of lines, configurations."""
    pictures, korean = some_pairs("de-en"), some_pairs("ko-en")
    splits = [("train", pictures[:300]), ("valid", pictures[300:330]), ("test", pictures[330:])]
    for (split, part), name in zip(splits, ("train", "val", "test_2016_flickr"), strict=True):
        write_pairs(folder / "data" / "multi30k", name, "de-en", part)
        write_pairs(folder / "my-text", split, "de-en", part, packed=False)
    write_pairs(folder, "tatoeba", "ko-en", korean, packed=False)
    write_pairs(folder, "corpus", "de-en", pictures, packed=False)
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
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name, content in (CONFIGURATIONS | DOWNLOADS).items():
        (folder / name).write_text(content, encoding="utf-8")


def write_models(folder: Path, shelf: Path) -> None:
    """Random models of transformers, under the names that the pages give to real ones."""
    write_folder(folder / "models" / "minilm", "bert")
    write_folder(folder / "models" / "bert-sst2", "bert", "classification", num_labels=2)
    write_folder(folder / "models" / "gpt2", "gpt2", "language-modeling", n_positions=256)
    write_marian_folder(folder / "downloads" / "opus-mt-de-en")
    shutil.copytree(folder / "downloads" / "opus-mt-de-en", shelf / "Helsinki-NLP" / "opus-mt-de-en")


def train_runs() -> None:
    """Train what the pages have trained, in the current directory."""
    for config, out, overrides in (
        ("multi30k-de-en", "multi30k-de-en", ()),
        ("multi30k-en-de", "multi30k-en-de", ("training.steps=5", "training.save_every=1")),
        ("post-norm.toml", "post-norm", ()),
        ("mine.toml", "writer", ("tokenizer.kind=characters", "data.max_length=32")),
        ("classifier.toml", "fine-tuned", ("model.init_from=models/bert-sst2",)),
    ):
        train(load_config(resolve_recipe(config), small(config, *overrides)), Path("runs") / out)
    card = Path("runs/multi30k-de-en/README.md")
    card.write_text(card.read_text(encoding="utf-8").replace("license:", "license: cc0-1.0", 1), encoding="utf-8")
    for copy in ("demo-de-en", "demo-ko-en", "one", "two", "three", "adam", "muon"):
        shutil.copytree("runs/multi30k-de-en", f"runs/{copy}")
    shutil.copytree("runs/multi30k-en-de", "runs/large")
    for copy in ("sentiment", "sst2-scratch"):
        shutil.copytree("runs/fine-tuned", f"runs/{copy}")
    shutil.copytree("runs/writer", "runs/shakespeare-char")
