"""Wrap a user's model: a module, a function, an object with encode and decode, a Hugging Face model.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.doctor.model_adapter import Kind, ModelAdapter, device_of, find_modules, tensor_of
from manyheads.errors import ManyheadsError, UsageError

__all__ = ["Masks", "check_call", "wrap_model"]

Masks = Callable[..., Sequence[Any]]


def wrap_model(
    model: Any,
    *,
    vocab_size: int | tuple[int, int] | None,
    pad: int | None,
    bos: int | None,
    eos: int | None,
    kind: Kind | None,
    masks: Masks | None,
    time_first: bool,
) -> ModelAdapter:
    """Return the adapter of a model.

    Raises:
        UsageError: it is not clear how to call the model; the message says which argument is missing.
    """
    if isinstance(model, nn.Transformer):
        raise UsageError(
            "nn.Transformer has no embeddings and no output layer, so it takes no token ids. Examine the module "
            "that holds all three, with forward(source_ids, target_ids) -> logits."
        )
    module = find_modules(model)
    config = huggingface_config(model)
    if config is not None:
        adapter = from_huggingface(model, config, kind, vocab_size)
        return replace(
            adapter,
            pad=adapter.pad if pad is None else pad,
            bos=adapter.bos if bos is None else bos,
            eos=adapter.eos if eos is None else eos,
        )
    if vocab_size is None:
        raise UsageError("vocab_size is missing: the number of token ids, or a pair (source, target).")
    sizes = (vocab_size, vocab_size) if isinstance(vocab_size, int) else vocab_size
    kind = kind or "encoder-decoder"
    return ModelAdapter(
        kind,
        plain_call(model, kind, masks, time_first),
        module,
        sizes,
        pad=pad,
        bos=bos,
        eos=eos,
        stated_limit=stated_limit(module),
        device=device_of(module),
    )


def plain_call(model: Any, kind: Kind, masks: Masks | None, time_first: bool) -> Callable[..., Tensor]:
    """Return a function of the ids of each side, batch first, that returns the scores.

    Raises:
        UsageError: the model takes further arguments, or cannot be called.
    """
    if callable(model):
        needed = required_arguments(model.forward if isinstance(model, nn.Module) else model)
        sides = 2 if kind == "encoder-decoder" else 1
        if masks is None and needed > sides:
            raise UsageError(
                f"the model takes {needed} arguments, of which {sides} are ids. Say what the others are: "
                "masks=a function of the ids that gives them, in order. Where they do not come after the ids, "
                f"examine a function: {as_function(kind)}."
            )
        function: Callable[..., Any] = model
    elif hasattr(model, "encode") and hasattr(model, "decode"):
        function = partial(encode_and_decode, model)
    else:
        raise UsageError(
            f"{type(model).__name__} can neither be called nor has it encode and decode. Examine a module, or a "
            f"function: {as_function(kind)}."
        )

    def call(*ids: Tensor) -> Tensor:
        arguments = [rows.t() for rows in ids] if time_first else list(ids)
        scores = tensor_of(function(*arguments, *(masks(*arguments) if masks else ())))
        if time_first and scores.dim() == 2 and len(scores) == arguments[-1].numel():
            scores = scores.unflatten(0, arguments[-1].shape)
        return scores.transpose(0, 1) if time_first and scores.dim() == 3 else scores

    return call


def as_function(kind: Kind) -> str:
    """Return the text of a lambda that adapts a model of any signature."""
    ids = {"encoder-decoder": "source, target", "encoder": "source", "decoder": "target"}[kind]
    return f"lambda {ids}: model(...), all arguments by name"


def check_call(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> None:
    """Call a model once.

    Raises:
        UsageError: it cannot be called so, or returns no scores; the message says what to give instead.
    """
    try:
        with torch.no_grad():
            adapter(ids)
    except ManyheadsError:
        raise
    except Exception as error:  # any exception of the user's model
        shapes = " and ".join(f"{side} ids {tuple(rows.shape)}" for side, rows in ids.items())
        sizes = " and ".join(f"{int(rows.max())} on the {side} side" for side, rows in ids.items())
        too_large = isinstance(error, IndexError)
        cures = [
            f"Ids went up to {sizes}: see whether vocab_size, a number or (source, target), is right."
            if too_large
            else f'If it reads one sequence, say kind="encoder" or "decoder" (here: "{adapter.kind}"); if it wants '
            "the time first, time_first=True; if masks, masks=a function of the ids.",
            f"Else examine a function: {as_function(adapter.kind)}.",
        ]
        message = str(error).partition("\n")[0].rstrip(".")
        raise UsageError(
            f"the model was called with {shapes} and raised {type(error).__name__}: {message}. {' '.join(cures)}"
        ) from error


def encode_and_decode(model: Any, source: Tensor, target: Tensor) -> Any:
    """Return the logits (B, T, V) of a model with encode(source) and decode(target, memory...)."""
    memory = model.encode(source)
    return model.decode(target, *(memory if isinstance(memory, tuple) else (memory,)))


def required_arguments(function: Callable[..., Any]) -> int:
    """Return the number of positional arguments without a default."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.default is inspect.Parameter.empty and parameter.kind in positional for parameter in parameters
    )


def stated_limit(module: nn.Module | None) -> int | None:
    """Return the smallest length limit that a module or a submodule states in an attribute of a usual name."""
    names = ("max_length", "max_len", "max_seq_len", "max_positions", "max_position_embeddings", "block_size")
    stated = [
        value
        for part in (module.modules() if module is not None else ())
        for name, value in vars(part).items()
        if name in names and isinstance(value, int)
    ]
    return min(stated, default=None)


def huggingface_config(model: Any) -> dict[str, Any] | None:
    """Return the fields of the configuration, None if the model is not one of Hugging Face."""
    try:
        return model.config.to_dict()
    except AttributeError:
        return None


def from_huggingface(
    model: Any, config: Mapping[str, Any], kind: Kind | None, vocab_size: int | tuple[int, int] | None
) -> ModelAdapter:
    """Return the adapter of a Hugging Face model; the model states whether it is a decoder.

    Raises:
        UsageError: its configuration has no vocab_size, nor has that of its parts.
    """
    if kind is None:
        generates = hasattr(model, "can_generate") and bool(model.can_generate())
        kind = "encoder-decoder" if config.get("is_encoder_decoder") else "decoder" if generates else "encoder"
    reader, writer = ({**config, **known(config.get(part) or {})} for part in ("encoder", "decoder"))
    if isinstance(vocab_size, int):
        vocab_size = (vocab_size, vocab_size)
    stated = (reader.get("vocab_size"), writer.get("decoder_vocab_size") or writer.get("vocab_size"))
    source_size, target_size = vocab_size or stated
    if not isinstance(source_size, int) or not isinstance(target_size, int):
        raise UsageError("vocab_size is missing, and the model's configuration has none.")
    starts = ("decoder_start_token_id", "bos_token_id") if kind == "encoder-decoder" else ("bos_token_id",)
    marks = [first_id(writer, names, target_size) for names in (starts, ("eos_token_id",))]
    # A causal model without padding of its own is padded with anything: it has a mask.
    pad = first_id(reader, ("pad_token_id",), source_size)
    pad = source_size - 1 if pad is None else pad

    def call(*ids: Tensor) -> Tensor:
        arguments: dict[str, Any] = {"input_ids": ids[0], "attention_mask": (ids[0] != pad).long()}
        if kind == "encoder-decoder":
            arguments["decoder_input_ids"] = ids[1]
        return tensor_of(model(**arguments))

    return ModelAdapter(
        kind,
        call,
        model,
        (source_size, target_size),
        pad=pad,
        bos=marks[0],
        eos=marks[1],
        stated_limit=limit_of(model, (reader, writer)),
        device=device_of(model),
    )


def known(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration that have a value."""
    return {name: value for name, value in config.items() if value is not None}


def first_id(config: Mapping[str, Any], names: Sequence[str], size: int) -> int | None:
    """Return the first of the named fields that is a token id, or None."""
    values = (config.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and 0 <= value < size), None)


def limit_of(model: nn.Module, configs: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the longest text in tokens that the configurations state, or None.

    RoBERTa numbers positions from padding_idx + 1 on: the rows before are never used.
    """
    names = ("max_position_embeddings", "n_positions")
    limits = [config[name] for config in configs for name in names if config.get(name)]
    return min(
        (
            limit - part.padding_idx - 1
            for limit in limits
            for part in model.modules()
            if isinstance(part, nn.Embedding) and part.num_embeddings == limit and part.padding_idx is not None
        ),
        default=min(limits, default=None),
    )
