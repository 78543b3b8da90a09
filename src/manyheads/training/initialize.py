"""Shape, vocabulary and weights of a training that starts from another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, TokenizerConfig
from manyheads.data.training_text import with_normal_form
from manyheads.errors import RunError
from manyheads.model.transformer import Transformer
from manyheads.reports import Listener
from manyheads.tensors.weights import check_values
from manyheads.text.characters import CharacterTokenizer
from manyheads.text.normalize import NORMAL_FORM
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.text.vocabulary import SymbolTokenizer
from manyheads.text.words import WordTokenizer
from manyheads.training.initial_model import HEAD, SHAPE, Pretrained, open_pretrained
from manyheads.training.task import AnyTask

Sides = tuple[Sequence[str], Sequence[str]]  # source and target texts


def with_initial_shape(config: Config, run: RunDirectory, listener: Listener) -> Config:
    """Return the configuration with the normal form of text, and with what `model.init_from` has.

    That are its shape and its tokenizer; the changes are reported. A run that has begun stores all this in its
    configuration, so that the other model is no longer needed, and a run of an earlier version stays as it is.
    """
    begun = run.config() if run.exists else None
    config = with_normal_form(config, begun.tokenizer.normal_form if begun else NORMAL_FORM)
    if config.model.init_from is None:
        return config
    if begun is not None and begun.model.init_from == config.model.init_from:
        shape = {name: value for name, value in begun.model.model_dump().items() if name in SHAPE + HEAD}
        tokenizer = begun.tokenizer
    else:
        pretrained = open_pretrained(config)
        shape, tokenizer = dict(pretrained.shape), pretrained.tokenizer_config
    own = config.model.model_dump()
    changed = [f"{name} = {_format_value(value)}" for name, value in shape.items() if own[name] != value]
    settings = _tokenizer_settings(config, tokenizer)
    if settings["kind"] != config.tokenizer.kind:
        changed.append(f"tokenizer.kind = {settings['kind']}")
    if changed:
        listener.message(f"as in {config.model.init_from}: {', '.join(changed)}")
    values = config.model_dump() | {"model": own | shape, "tokenizer": settings}
    return parse_config(values, origin=f"with model.init_from = {config.model.init_from}")


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tokenizer_settings(config: Config, tokenizer: TokenizerConfig) -> dict[str, Any]:
    """Return the tokenizer settings: those of the other model, unless its vocabulary is replaced."""
    if config.model.init_vocabulary == "replace":
        return config.tokenizer.model_dump()
    if tokenizer.kind in ("bpe", "unigram"):  # how text is split while training is no part of the model
        tokenizer = tokenizer.model_copy(update={"sampling": config.tokenizer.sampling})
    return tokenizer.model_dump()


def initial_tokenizers(
    task: AnyTask,
    config: Config,
    learn: Callable[[], TokenizerPair],
    sides: Callable[[], Sides],
    listener: Listener,
) -> TokenizerPair:
    """Return the tokenizers that a training starts with (`model.init_vocabulary`), after `with_initial_shape`.

    `learn` trains new tokenizers on the training text; `sides` returns its source and target texts, without targets
    for tasks other than translation.
    """
    if config.model.init_vocabulary == "replace":
        return learn()
    tokenizers = open_pretrained(config).tokenizers()
    if config.model.init_vocabulary == "keep":
        return _with_reserved_symbols(tokenizers, task.reserved_symbols(config), config, listener)
    sources, targets = sides()
    if tokenizers.joint:
        both = _extend(tokenizers.source, config, [*sources, *targets], listener)
        return TokenizerPair(both, both, joint=True)
    source = _extend(tokenizers.source, config, sources, listener)
    target = _extend(tokenizers.target, config, targets, listener)
    return TokenizerPair(source, target, joint=False)


def _with_reserved_symbols(
    tokenizers: TokenizerPair, needed: Sequence[str], config: Config, listener: Listener
) -> TokenizerPair:
    """Return tokenizers with the reserved symbols that the training needs, those that are new at the end."""

    def complete(tokenizer: Tokenizer) -> Tokenizer:
        if not needed:
            return tokenizer
        assert isinstance(tokenizer, SubwordTokenizer)  # Config.check_vocabulary and check_task
        new = [symbol for symbol in needed if symbol not in tokenizer.reserved]
        listener.message(f"vocabulary: {tokenizer.size:,} pieces kept; new: {', '.join(new) or 'none'}")
        return tokenizer.with_reserved(config.tokenizer, new)

    source = complete(tokenizers.source)
    target = source if tokenizers.joint else complete(tokenizers.target)
    return TokenizerPair(source, target, joint=tokenizers.joint)


def _extend(tokenizer: Tokenizer, config: Config, texts: Sequence[str], listener: Listener) -> Tokenizer:
    """Extend a symbol tokenizer by the new symbols of texts.

    Raises:
        RunError: the tokenizer is of another kind.
    """
    trained: SymbolTokenizer
    if isinstance(tokenizer, WordTokenizer):
        trained = WordTokenizer.train(config.tokenizer, texts, tokenizer.languages)
    elif isinstance(tokenizer, CharacterTokenizer):
        trained = CharacterTokenizer.train(
            config.tokenizer, texts, tokenizer.languages, keep_space=config.keep_space
        )
    else:
        raise RunError(
            f'model.init_vocabulary = "extend" is for words and characters; {config.model.init_from} has '
            f'tokenizer.kind = "{tokenizer.kind}", which spells new words with its pieces. Use "keep" or "replace".'
        )
    new = [symbol for symbol in trained.ids if symbol not in tokenizer.ids]
    listener.message(f"vocabulary: {tokenizer.size:,} symbols kept, {len(new):,} new")
    return tokenizer.extended(new)


_MOST_NAMED = 5


def take_weights(
    model: Transformer,
    task: AnyTask,
    config: Config,
    tokenizers: TokenizerPair,
    labels: Sequence[str],
    listener: Listener,
) -> None:
    """Copy the weights of `model.init_from` into a new model on the CPU, and report what was copied.

    `labels` are the classes of a classifier, in order.

    Raises:
        RunError: a weight is missing, has another shape, or is not finite; the message names it.
    """
    pretrained, vocabulary = open_pretrained(config), config.model.init_vocabulary
    where, tensors = pretrained.where, _usable(pretrained, config, labels)
    rows_of_task = task.token_rows
    copied: list[str] = []  # unchanged
    resized: list[str] = []  # row by row, with a description
    new: list[str] = []  # random
    with torch.no_grad():
        for name, own in model.named_parameters():
            tensor = tensors.get(name)
            if tensor is None:
                new.append(name)
                continue
            check_values({name: tensor}, str(where))
            if name in rows_of_task and (vocabulary != "keep" or task.reserved_symbols(config)):
                rows = _rows_of(rows_of_task[name], tokenizers, pretrained.tokenizers(), vocabulary)
                resized.append(_copy_rows(name, own, tensor, rows))
            elif tensor.shape != own.shape:
                raise RunError(f"{name} is {tuple(tensor.shape)} in {where}, but {tuple(own.shape)} here.")
            else:
                own.copy_(tensor)
                copied.append(name)
    missing = [name for name in new if not name.startswith(task.head)]
    if missing or not copied:
        raise RunError(f"{where} has no {_shorten_names(missing) if missing else 'weight that fits'}.")
    unused = {*pretrained.tensors(), *pretrained.unused()} - {*copied}
    unused -= {name for name in rows_of_task if name in tensors}
    listener.message(
        f"from {where}: {len(copied)} tensors taken; "
        + (f"resized: {'; '.join(resized)}; " if resized else "")
        + f"new: {', '.join(new) or 'none'}; not used: {_shorten_names(sorted(unused))}"
    )


def _usable(pretrained: Pretrained, config: Config, labels: Sequence[str]) -> Mapping[str, Tensor]:
    """Return the weights that can be copied; a classification head only if labels and pooling are the same."""
    tensors = pretrained.tensors()
    if not labels:
        return tensors
    if not _same_labels(pretrained.labels, labels):
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("output.")}
    if {"pooling": config.model.pooling, "pooler": config.model.pooler} != pretrained.pooled:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler.")}
    return tensors


def _same_labels(pretrained: Sequence[str], labels: Sequence[str]) -> bool:
    """Return whether two models have the same classes in order; LABEL_0 is the default name in transformers."""
    plain = [name.removeprefix("LABEL_") for name in pretrained]
    return bool(pretrained) and (list(pretrained) == list(labels) or plain == list(labels))


def _rows_of(side: str, tokenizers: TokenizerPair, pretrained: TokenizerPair, vocabulary: str) -> list[int]:
    """Return the original id of each new id: the same if extended, else the id of an equal piece; -1 is none."""
    new, original = (pair.source if side == "source" else pair.target for pair in (tokenizers, pretrained))
    if vocabulary != "replace":
        return [i if i < original.size else -1 for i in range(new.size)]
    known = {piece: i for i, piece in reversed(list(enumerate(original.pieces(range(original.size)))))}
    return [known.get(piece, -1) for piece in new.pieces(range(new.size))]


def _copy_rows(name: str, own: Tensor, tensor: Tensor, rows: Sequence[int]) -> str:
    """Copy the rows of the tokens in both vocabularies; return a description."""
    if tensor.shape[1:] != own.shape[1:] or len(rows) != len(own):
        raise RunError(f"{name} is {tuple(tensor.shape)} there, but {tuple(own.shape)} here.")
    known = [index for index, row in enumerate(rows) if row >= 0]
    own[known] = tensor[[rows[index] for index in known]].to(own)
    return f"{name} ({len(known):,} rows taken, {len(rows) - len(known):,} new, {len(tensor):,} there)"


def _shorten_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "") if names else "none"
