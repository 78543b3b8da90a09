"""Finding out how somebody's model is called: a module, a function, two calls, a Hugging Face model.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from manyheads.doctor.patient import Kind, Patient, tensor_of
from manyheads.errors import UsageError

__all__ = ["Masks", "admit"]

Masks = Callable[..., Sequence[Any]]


@runtime_checkable
class Dictionary(Protocol):
    """A configuration as Hugging Face writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        ...


@runtime_checkable
class Configured(Protocol):
    """Something with a configuration."""

    config: Any


@runtime_checkable
class Generating(Protocol):
    """A Hugging Face model says of itself whether it generates."""

    def can_generate(self) -> bool:
        """Whether it predicts next tokens."""
        ...


@runtime_checkable
class TwoParts(Protocol):
    """A model in two calls: read the source, then write."""

    def encode(self, source: Tensor) -> Any:
        """Source (B, S) -> memory, or a tuple that begins with it."""
        ...

    def decode(self, target: Tensor, *memory: Any) -> Tensor:
        """Target (B, T) and what `encode` gave -> logits (B, T, V)."""
        ...


def admit(
    model: Any,
    *,
    vocab_size: int | tuple[int, int] | None,
    pad: int | None,
    bos: int | None,
    eos: int | None,
    kind: Kind | None,
    masks: Masks | None,
    time_first: bool,
) -> Patient:
    """Find out how a model is called.

    Raises:
        UsageError: it cannot be told; the message says which argument would.
    """
    if isinstance(model, nn.Transformer):
        raise UsageError(
            "nn.Transformer has no embeddings and no output layer, so it takes no token ids. Examine the module "
            "that holds all three, with forward(source_ids, target_ids) -> logits."
        )
    module = model if isinstance(model, nn.Module) else None
    config = huggingface_config(model)
    if config is not None:
        patient = from_huggingface(model, config, kind)
        return replace(
            patient,
            pad=patient.pad if pad is None else pad,
            bos=patient.bos if bos is None else bos,
            eos=patient.eos if eos is None else eos,
        )
    if vocab_size is None:
        raise UsageError("vocab_size is missing: the number of token ids, or a pair (source, target).")
    sizes = (vocab_size, vocab_size) if isinstance(vocab_size, int) else vocab_size
    kind = kind or "encoder-decoder"
    return Patient(
        kind,
        plain_call(model, kind, masks, time_first),
        module,
        source_size=0 if kind == "decoder" else sizes[0],
        target_size=0 if kind == "encoder" else sizes[1],
        pad=pad,
        bos=bos,
        eos=eos,
        stated_limit=stated_limit(module),
        device=device_of(module),
    )


def device_of(module: nn.Module | None) -> torch.device:
    """Where its weights are."""
    weights = None if module is None else next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device


def plain_call(model: Any, kind: Kind, masks: Masks | None, time_first: bool) -> Callable[..., Tensor]:
    """A function of ids, whatever the model is."""
    if callable(model):
        needed = required_arguments(model.forward if isinstance(model, nn.Module) else model)
        sides = 2 if kind == "encoder-decoder" else 1
        if masks is None and needed > sides:
            raise UsageError(
                f"the model takes {needed} arguments, of which {sides} are ids. Say what the others are: "
                "masks=a function of the ids that gives them, in order."
            )
        function: Callable[..., Any] = model
    elif isinstance(model, TwoParts):
        function = two_parts(model)
    else:
        raise UsageError(f"{type(model).__name__} can neither be called nor has it encode and decode.")

    def call(*ids: Tensor) -> Tensor:
        turned = [rows.t() for rows in ids] if time_first else list(ids)
        scores = tensor_of(function(*turned, *(masks(*turned) if masks else ())))
        return scores.transpose(0, 1) if time_first else scores

    return call


def two_parts(model: TwoParts) -> Callable[..., Any]:
    """A model in two calls as one."""

    def call(source: Tensor, target: Tensor) -> Any:
        memory = model.encode(source)
        return model.decode(target, *(memory if isinstance(memory, tuple) else (memory,)))

    return call


def required_arguments(function: Callable[..., Any]) -> int:
    """How many arguments have no default."""
    parameters = inspect.signature(function).parameters.values()
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.default is inspect.Parameter.empty and parameter.kind in places for parameter in parameters
    )


def stated_limit(module: nn.Module | None) -> int | None:
    """The limit of length that a module states in an attribute of the usual names, of itself or of a part."""
    names = ("max_length", "max_len", "max_seq_len", "max_positions", "max_position_embeddings", "block_size")
    stated = [
        value
        for part in (module.modules() if module is not None else ())
        for name, value in vars(part).items()
        if name in names and isinstance(value, int)
    ]
    return min(stated, default=None)


# Hugging Face, recognised by what its models have


def huggingface_config(model: object) -> dict[str, Any] | None:
    """Its configuration's fields, None if it is no model of theirs."""
    if not isinstance(model, Configured) or not isinstance(model.config, Dictionary):
        return None
    return model.config.to_dict()


def from_huggingface(model: Any, config: Mapping[str, Any], kind: Kind | None) -> Patient:
    """A model of theirs; whether it is a decoder it says itself."""
    if kind is None:
        generates = isinstance(model, Generating) and model.can_generate()
        kind = "encoder-decoder" if config.get("is_encoder_decoder") else "decoder" if generates else "encoder"
    pad, eos = config.get("pad_token_id"), config.get("eos_token_id")
    # A causal model without padding of its own is padded with anything: it has a mask.
    pad = pad if isinstance(pad, int) and pad >= 0 else config["vocab_size"] - 1
    start = config.get("decoder_start_token_id") if kind == "encoder-decoder" else config.get("bos_token_id")
    size = config["vocab_size"]
    limits = [config[name] for name in ("max_position_embeddings", "n_positions") if config.get(name)]

    def call(*ids: Tensor) -> Tensor:
        arguments: dict[str, Any] = {"input_ids": ids[0], "attention_mask": (ids[0] != pad).long()}
        if kind == "encoder-decoder":
            arguments["decoder_input_ids"] = ids[1]
        return tensor_of(model(**arguments))

    return Patient(
        kind,
        call,
        model,
        source_size=0 if kind == "decoder" else size,
        target_size=0 if kind == "encoder" else config.get("decoder_vocab_size") or size,
        pad=pad,
        bos=start,
        eos=eos if isinstance(eos, int) else None,
        stated_limit=min(limits, default=None),
        device=device_of(model),
    )
