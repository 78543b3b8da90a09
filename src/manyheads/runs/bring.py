"""Bring a model of another program in, as a run directory."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyheads import __version__
from manyheads.checkpoint import RunDirectory
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, Task
from manyheads.errors import ConfigError, RunError, UsageError
from manyheads.interop.drafts import drafted
from manyheads.interop.huggingface import Pretrained, check_pretrained, is_pretrained, read_pretrained
from manyheads.interop.marian import check_marian, has_transformers, is_marian, read_marian, their_numbers
from manyheads.interop.parity import Parity, random_samples, reference
from manyheads.interop.sources import folder_of
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.runs.cards.transformers import imported_text_card
from manyheads.runs.cards.translator import imported_card
from manyheads.tasks.classification import LABELS, Labels
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import PAD, TokenizerPair

__all__ = ["Import", "bring"]

VERBS: dict[Task, str] = {"translation": "translate", "classification": "classify", "language-modeling": "generate"}
HEAD_SEED = 1  # of a head that nobody trained
NO_LANGUAGE = "und"  # ISO 639-2 for a language that nobody names


@dataclass(frozen=True)
class Import:
    """What was brought in.

    Attributes:
        out: the run directory.
        source: where it came from.
        task: what it is for.
        parameters: numbers of the model.
        parity: how ours compares with theirs in transformers; None where that is not installed.
        new: weights that it lacked, and that are by chance now.
        unused: weights of it that ours has no use for.
    """

    out: Path
    source: str
    task: Task
    parameters: int
    parity: Parity | None
    new: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "out": str(self.out),
            "source": self.source,
            "task": self.task,
            "parameters": self.parameters,
            "parity": self.parity.to_json() if self.parity else None,
            "new": list(self.new),
            "unused": list(self.unused),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        compared = "not compared with the original: transformers is not installed"
        use = f"manyheads {VERBS[self.task]} {self.out}, or to fine-tune: " if self.task in VERBS else ""
        return [
            f"{self.out}: {self.parameters:,} parameters of {self.source}, for {self.task}",
            *([f"warning: never trained, and by chance: {', '.join(self.new)}"] if self.new else []),
            *([f"not used: {', '.join(self.unused)}"] if self.unused else []),
            self.parity.line() if self.parity else ("nothing to compare" if self.new else compared),
            f"Next: {use}manyheads train CONFIG --set model.init_from={self.out}",
        ]


def bring(
    where: str,
    out: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    language: str | None = None,
    labels: Sequence[str] = (),
    trust_pickle: bool = False,
) -> Import:
    """Make a run directory of a model of transformers, in a folder or on the hub.

    Args:
        where: the folder, or user/name.
        out: the run directory to be.
        source: of a MarianMT model, the language of the source; the model's own word for it unless given.
        target: likewise.
        language: of any other model, the language of its text.
        labels: of an encoder, make a classifier that tells these apart; its head is new unless it knows them.
        trust_pickle: read weights that are a pickle.

    Raises:
        RunError: it is no such model, cannot be read, or `out` exists.
        UsageError: an option does not go with this model.
        ParityError: ours gives something else than theirs.
    """
    folder = folder_of(where)
    if folder.is_dir() and is_pretrained(folder):
        if source or target:
            raise UsageError(f"{where} translates nothing: give --language in the place of --source and --target.")
        found = read_pretrained(folder, trust_pickle=trust_pickle)
        return bring_pretrained(where, folder, out, found, language or NO_LANGUAGE, tuple(labels), trust_pickle)
    if not folder.is_dir() or not is_marian(folder):
        raise RunError(f"{where} is no model of transformers: there is no config.json that names its model_type.")
    if language or labels:
        raise UsageError(f"{where} is a MarianMT model: --language and --labels are for others.")
    opened = read_marian(folder, source=source, target=target, trust_pickle=trust_pickle)
    parity = None
    if has_transformers():
        right = reference(opened.model, random_samples(opened.tokenizers.source))
        parity = check_marian(folder, their_numbers(folder), right, trust_pickle=trust_pickle)
    card = imported_card(opened.config, opened.tokenizers, where)
    write_run(out, opened.config, opened.tokenizers, opened.model, card, where)
    count = sum(parameter.numel() for parameter in opened.model.parameters())
    return Import(out, where, "translation", count, parity)


def bring_pretrained(
    where: str,
    folder: Path,
    out: Path,
    found: Pretrained,
    language: str,
    labels: tuple[str, ...],
    trust_pickle: bool,
) -> Import:
    """As `bring`, of an encoder or a GPT-2."""
    task = task_of(found, labels)
    names = labels or found.labels
    known = bool(found.labels) and len(names) == len(found.labels)
    config = run_config(found, task, language, known)
    tokenizer = HuggingFaceTokenizer(found.tokenizer.stored, keep_space=config.tokenizer.keep_space)
    model = new_model(task, config, tokenizer, len(names))
    tensors = found.tensors(task)
    if task == "classification" and not known:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("output.")}
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name in own.keys() & tensors.keys():
            own[name].copy_(tensors[name])
    new = tuple(name for name in own if name not in tensors)
    parity = None
    if has_transformers() and not new:
        parity = check_pretrained(folder, tokenizer, task, model.eval(), trust_pickle=trust_pickle)
    more = {LABELS: Labels(names, 1, trained=known).to_json()} if task == "classification" else {}
    card = imported_text_card(config, tokenizer.size, names, where)
    write_run(out, config, TokenizerPair(tokenizer, tokenizer, joint=True), model, card, where, more)
    count = sum(parameter.numel() for parameter in own.values())
    return Import(out, where, task, count, parity, new, found.unused)


def task_of(found: Pretrained, labels: tuple[str, ...]) -> Task:
    """What a model is for.

    Raises:
        UsageError: labels for a language model.
        RunError: an encoder without any head, and no labels were given.
    """
    if found.is_decoder:
        if labels:
            raise UsageError("--labels make a classifier of an encoder, and this is a language model.")
        return "language-modeling"
    if found.labels or labels:
        return "classification"
    if "masked-lm" in found.heads:
        return "masked-lm"
    raise RunError(
        f"{found.where} is an encoder without a head: it classifies nothing. Train on it with "
        f"--set model.init_from={found.where}, or give --labels A,B for a classifier whose head is new."
    )


def run_config(found: Pretrained, task: Task, language: str, trained: bool) -> Config:
    """The configuration of the run to be.

    Raises:
        UsageError: the language is none.
    """
    shape, family = dict(found.shape), found.tokenizer.stored.family
    if task == "classification":
        pooler = "relu" if family == "distilbert" else "tanh"
        shape |= {"pooling": "cls" if trained or "classification" in found.heads else "mean", "pooler": pooler}
    longest = shape["max_positions"] - (0 if task == "language-modeling" else 2)
    values = {
        "task": task,
        "data": {"language": language, "max_length": longest},
        "tokenizer": {
            "kind": "huggingface",
            "vocab_size": max(8, found.tokenizer.size),
            "keep_space": task == "language-modeling",
        },
        "model": shape,
    }
    try:
        return parse_config(values, origin=found.where)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def new_model(task: Task, config: Config, tokenizer: HuggingFaceTokenizer, classes: int) -> Transformer:
    """A model whose weights are by chance, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(HEAD_SEED)
        if task == "language-modeling":
            return DecoderOnly(config.model, tokenizer.size, absent=tokenizer.absent)
        if task == "masked-lm":
            return MaskedLanguageModel(config.model, tokenizer.size, pad=PAD)
        return TextClassifier(config.model, tokenizer.size, classes, pad=PAD)


def write_run(
    out: Path,
    config: Config,
    tokenizers: TokenizerPair,
    model: Transformer,
    card: str,
    where: str,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """A run directory, whole or not there."""
    with drafted(out) as draft:
        run = RunDirectory(draft)
        made_with = {"manyheads": __version__, "python": platform.python_version(), "torch": torch.__version__}
        run.begin(config, tokenizers, {**made_with, "imported_from": where}, more)
        run.publish({name: parameter.detach() for name, parameter in model.named_parameters()})
        run.describe(card)
