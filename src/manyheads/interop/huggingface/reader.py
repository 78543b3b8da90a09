"""Read a BERT, DistilBERT, RoBERTa or GPT-2 folder of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from manyheads.checkpoint import read_json
from manyheads.config.schema import ModelConfig, Task
from manyheads.errors import RunError
from manyheads.interop.huggingface.names import Entry, Form, body, head
from manyheads.interop.huggingface.pretrained import HuggingFaceModel
from manyheads.interop.huggingface.settings import family_of, our_shape, position_offset
from manyheads.interop.huggingface.tokenizers import read_tokenizer
from manyheads.interop.weights import read_weights
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.text.huggingface import Family, HuggingFaceTokenizer

__all__ = ["is_pretrained", "read_pretrained"]

PREFIXES: dict[Family, str] = {
    "bert": "bert.",
    "distilbert": "distilbert.",
    "roberta": "roberta.",
    "gpt2": "transformer.",
}
# Weights of heads that ours has no use for, and tables that are computed, not trained.
KNOWN = (
    "cls.", "pooler.", "classifier.", "pre_classifier.", "lm_head.", "vocab_", "qa_outputs.", "score.", "dropout.",
)  # fmt: skip
COMPUTED = (".position_ids", ".attn.bias", ".attn.masked_bias", "embeddings.token_type_ids")
# Other names that weights may have.
OTHER_NAMES: dict[Family, tuple[tuple[str, str], ...]] = {
    "bert": (("cls.predictions", "cls.predictions.decoder"),),
    "roberta": (("classifier.dense", "pooler.dense"), ("lm_head", "lm_head.decoder")),
}
# Weights that are those of the embeddings, or of the bias beside them, once more.
TWICE: dict[Family, tuple[str, ...]] = {
    "bert": ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "cls.predictions.weight"),
    "roberta": ("lm_head.decoder.weight", "lm_head.decoder.bias", "lm_head.weight"),
    "distilbert": ("vocab_projector.weight",),
    "gpt2": ("lm_head.weight",),
}
HEADS: tuple[Task, ...] = ("classification", "masked-lm")
MOST_NAMED = 5


def is_pretrained(folder: Path) -> bool:
    """Whether a folder has a config.json of transformers, of whatever model but MarianMT."""
    path = folder / "config.json"
    return path.is_file() and read_json(path).get("model_type") not in (None, "marian")


def read_pretrained(folder: Path, *, trust_pickle: bool = False) -> HuggingFaceModel:
    """The model of a folder with config.json, model.safetensors, and tokenizer.json or an older vocabulary.

    Args:
        folder: where they are.
        trust_pickle: read pytorch_model.bin where there is no model.safetensors.

    Raises:
        RunError: a type that is not supported, a file that is missing or damaged, a variant that ours cannot be, or
            weights that are missing, unknown, of another shape, or not finite; they are named.
        MissingExtraError: the `tokenizers` library is not installed.
    """
    theirs = read_json(folder / "config.json")
    family = family_of(theirs, folder)
    shape = our_shape(theirs, family, folder)
    try:
        config = ModelConfig(**shape)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise RunError(f"{folder / 'config.json'} makes no model: {reason}") from error
    weights = tidied(read_weights(folder, trust_pickle=trust_pickle), family, config)
    table = "wte.weight" if family == "gpt2" else "embeddings.word_embeddings.weight"
    missing = list(islice((name for name in names(body(family, config)) if name not in weights), MOST_NAMED + 1))
    if missing:
        raise RunError(f"{folder} lacks weights that its config.json asks for: {named(missing)}.")
    rows = weights[table].size(0) if weights[table].ndim == 2 else 0
    if theirs.get("vocab_size", rows) != rows or not rows:
        raise RunError(f"{folder}: {table} has {rows:,} rows, and vocab_size is {theirs.get('vocab_size')!r}.")
    tokenizer = read_tokenizer(folder, family, rows)
    heads = {task: present_head(family, task, weights) for task in HEADS}
    labels = labels_of(theirs, heads["classification"], weights)
    if not labels:
        heads["classification"] = poolers(heads["classification"])
    if theirs.get("tie_word_embeddings") is False or (config.activation != "gelu" and family != "roberta"):
        heads["masked-lm"] = []  # ours is tied to the embeddings, and has gelu
    used = {*names(body(family, config)), *(name for entries in heads.values() for name in names(entries))}
    unknown = sorted(name for name in weights if name not in used and not name.startswith(KNOWN))
    if unknown:
        raise RunError(f"{folder} has weights that its config.json does not speak of: {named(unknown)}.")
    change = Change(folder, weights, tokenizer, position_offset(theirs, family))
    found = HuggingFaceModel(
        where=str(folder),
        shape=shape,
        tokenizer=tokenizer,
        body=change.tensors(body(family, config)),
        heads={task: change.tensors(entries) for task, entries in heads.items() if entries},
        labels=labels,
        unused=tuple(sorted(weights.keys() - used)),
    )
    check_shapes(found, config)
    return found


def tidied(weights: Mapping[str, Tensor], family: Family, config: ModelConfig) -> dict[str, Tensor]:
    """Their weights under the names of today, without what is computed or there twice."""
    found = {renamed(name, family): one for name, one in weights.items() if not name.endswith(COMPUTED)}
    for name, old in OTHER_NAMES.get(family, ()):
        for kind in ("weight", "bias"):
            if f"{name}.{kind}" not in found and f"{old}.{kind}" in found:
                found[f"{name}.{kind}"] = found.pop(f"{old}.{kind}")
    for name in TWICE.get(family, ()):
        if config.tied_embeddings != "none":
            found.pop(name, None)
    return found


def renamed(name: str, family: Family) -> str:
    """A name without that of the model, and of old norms as it is today."""
    plain = name.removeprefix(PREFIXES[family])
    return plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def names(entries: Iterable[Entry]) -> Iterator[str]:
    """Their names in entries."""
    return (name for entry in entries for name in entry.theirs)


def named(found: list[str]) -> str:
    """The first names, for a message."""
    return ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")


def present_head(family: Family, task: Task, weights: Mapping[str, Tensor]) -> list[Entry]:
    """The entries of a head that is there: all, or of a classifier's its pooler alone."""
    entries = list(head(family, task))
    if all(name in weights for name in names(entries)):
        return entries
    pooler = poolers(entries)
    return pooler if all(name in weights for name in names(pooler)) else []


def poolers(entries: Iterable[Entry]) -> list[Entry]:
    """Those of entries that are a pooler's."""
    return [entry for entry in entries if entry.ours.startswith("pooler.")]


def labels_of(theirs: Mapping[str, Any], entries: list[Entry], weights: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The names of the classes of a head, in order; none where it tells no classes apart, one for each text."""
    outputs = [entry for entry in entries if entry.ours == "output.bias"]
    count = weights[outputs[0].theirs[0]].numel() if outputs else 0
    if count < 2 or theirs.get("problem_type") not in (None, "single_label_classification"):
        return ()
    given = theirs.get("id2label")
    found = [given.get(str(number)) for number in range(count)] if isinstance(given, Mapping) else []
    sound = len({*found}) == count and all(isinstance(name, str) and name.strip() for name in found)
    return tuple(str(name) for name in found) if sound else tuple(f"LABEL_{number}" for number in range(count))


class Change:
    """Their weights as ours."""

    def __init__(
        self, folder: Path, weights: Mapping[str, Tensor], tokenizer: HuggingFaceTokenizer, offset: int
    ) -> None:
        """Of a folder whose first `offset` rows of positions are of no use."""
        self.folder = folder
        self.weights = weights
        self.theirs = tokenizer.theirs
        self.offset = offset

    def tensors(self, entries: Iterable[Entry]) -> dict[str, Tensor]:
        """Of all entries; raises `RunError` where parts do not fit each other, or are no numbers."""
        return {entry.ours: self.tensor(entry) for entry in entries}

    def tensor(self, entry: Entry) -> Tensor:
        """One."""
        try:
            found = torch.cat([self.weights[name] for name in entry.theirs]).float()
            if entry.form is Form.TRANSPOSED and found.ndim == 2:
                found = found.T
            elif entry.form is Form.POSITIONS:
                found = found[self.offset :]
            elif entry.form is Form.VOCABULARY:
                rows = [len(found) if number is None else number for number in self.theirs]
                found = torch.cat([found, found.new_zeros(1, *found.shape[1:])])[rows]
        except (RuntimeError, IndexError) as error:
            raise RunError(f"{self.folder}: {entry.theirs[0]} does not fit: {error}.") from error
        if not found.isfinite().all():
            raise RunError(f"{self.folder} is damaged: {entry.theirs[0]} holds values that are not finite.")
        return found.contiguous()


def check_shapes(found: HuggingFaceModel, config: ModelConfig) -> None:
    """Compare the weights with the model that config.json asks for, without building it; raises `RunError`."""
    size = found.tokenizer.size
    try:
        with torch.device("meta"):
            whole: list[Transformer] = [DecoderOnly(config, size)]
            if not found.is_decoder:
                classes = max(1, len(found.labels))
                whole = [TextClassifier(config, size, classes), MaskedLanguageModel(config, size)]
    except (RuntimeError, OverflowError) as error:
        raise RunError(f"{found.where} asks for a model that cannot be: {error}") from error
    for model, task in zip(whole, HEADS, strict=False):
        wanted = {name: tuple(one.shape) for name, one in model.named_parameters()}
        given = found.body if found.is_decoder else found.tensors(task)
        wrong = [
            f"{name} is {tuple(one.shape)}, not {wanted.get(name)}"
            for name, one in given.items()
            if wanted.get(name) != tuple(one.shape)
        ]
        if wrong:
            raise RunError(f"{found.where} has weights that do not fit its config.json: {'; '.join(wrong[:3])}.")
