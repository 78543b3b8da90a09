"""Texts and runs: files of lines, recipes that are trained, translations; and made-up ones for `--tiny`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bitext.lines import read_lines
from harness import FOLDER, Option, option

WORDS = {
    "de": ["der", "die", "das", "ein", "kein", "Hund", "Vogel", "Mann", "Haus", "Garten", "sieht", "hört", "sucht",
           "findet", "malt", "rot", "blau", "alt", "und", "heute"],
    "en": ["the", "these", "that", "a", "no", "dog", "bird", "man", "house", "garden", "sees", "hears", "seeks",
           "finds", "paints", "red", "blue", "old", "and", "today"],
}  # fmt: skip
SMALLEST = (  # settings that turn a recipe for translation into a run of two updates on `write_pairs(valid="val")`
    "tokenizer.vocab_size=300",
    "model.d_model=16",
    "model.d_ff=24",
    "training.epochs=none",
    "training.max_minutes=none",
    "training.steps=2",
    "training.save_every=2",
    "data.test=test",
)


def read_rows(files: Sequence[Path], most: int | None = None) -> list[tuple[str, ...]]:
    """Return the first lines that stand beside each other in some files, plain or compressed."""
    return list(islice(zip(*map(read_lines, files), strict=True), most))


def write(path: Path, lines: Iterable[str]) -> Path:
    """Write lines to a file, whose folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def train_recipe(recipe: str, overrides: Sequence[str], run: Path) -> Any:
    """Train a recipe or a TOML file with some settings; return what was trained."""
    from manyheads.config.load import load_config, resolve_recipe
    from manyheads.runs.train import train

    return train(load_config(resolve_recipe(recipe), overrides), run)


def translations(translator: Any, sources: Sequence[str]) -> list[str]:
    """Return the outputs of a translator, in groups of lines."""
    from manyheads.inference.translation.grouped import translate_in_groups

    return [result.translation for result in translate_in_groups(translator, sources)]


# --- made-up texts and runs ---


def named(name: str) -> Callable[[Path], Path]:
    """Return a function that names a file of a folder, as an option of `--tiny`."""
    return lambda folder: folder / name


def sentences(count: int, seed: int) -> list[list[int]]:
    """Return sentences of 3 to 12 words, as indices into the lists of words."""
    rng = random.Random(seed)
    return [rng.choices(range(20), k=rng.randint(3, 12)) for _ in range(count)]


def write_pairs(folder: Path, valid: str = "valid", test: str = "test") -> Path:
    """Write 300 pairs for training, 20 for validation and 20 for test, one file a language."""
    for seed, (split, count) in enumerate({"train": 300, valid: 20, test: 20}.items()):
        rows = sentences(count, seed)
        for language, words in WORDS.items():
            write(folder / f"{split}.{language}", (f"{' '.join(words[index] for index in row)} ." for row in rows))
    return folder


def write_dev_pairs(folder: Path) -> Path:
    return write_pairs(folder, valid="dev")


def write_labelled(folder: Path) -> Path:
    """Write 60 labelled sentences for train and 20 for dev; the label is 1 if the sentence has the word "dog"."""
    for seed, (split, count) in enumerate({"train": 60, "dev": 20}.items()):
        rows = ([WORDS["en"][index] for index in row] for row in sentences(count, seed))
        write(folder / f"{split}.tsv", (f"{int('dog' in row)}\t{' '.join(row)}" for row in rows))
    return folder


def write_encoder(folder: Path) -> Path:
    """Write a BERT of width 16 with random weights, and its tokenizer, in the format of transformers."""
    import transformers

    symbols = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ids = {piece: i for i, piece in enumerate([*symbols, *WORDS["en"]])}
    config = transformers.BertConfig(
        vocab_size=len(ids), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab=ids).save_pretrained(folder)
    return folder


def train_run(folder: Path) -> Path:
    """Train a translator of width 16 for ten updates: post-norm, sinusoidal, all embeddings tied, as MarianMT."""
    train_recipe(str(FOLDER / "tiny_run.toml"), [f"data.root={write_pairs(folder)}"], folder / "run")
    return folder / "run"


# --- options that several scripts have ---

RUN = option(Path, "run directory", tiny=train_run, required=True)
ROOT = option(Path, "folder of the text", tiny=lambda folder: write_pairs(folder, valid="val"), required=True)


def pairs_option(split: str) -> Option:
    settings = {"nargs": 2, "action": "append", "metavar": ("SOURCE", "TARGET")}
    files = [named(f"{split}.{language}") for language in WORDS]
    tiny = {"tiny": lambda folder: [[file(folder) for file in files]], "required": True}
    return option(Path, "lines that the run was not trained on, and references", **settings, **tiny)


def out(default: str) -> Option:
    return option(Path(default), "folder of the runs", tiny=named("runs"))
