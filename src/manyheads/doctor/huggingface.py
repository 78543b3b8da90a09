"""Recognise models of Hugging Face and wrap them.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from manyheads.doctor.model_adapter import Kind, ModelAdapter, tensor_of
from manyheads.doctor.module_finder import device_of
from manyheads.errors import UsageError

__all__ = ["from_huggingface", "huggingface_config"]


@runtime_checkable
class Dictionary(Protocol):
    """Configuration of a Hugging Face model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        ...


@runtime_checkable
class Configured(Protocol):
    """Object with a configuration."""

    config: Any


@runtime_checkable
class Generating(Protocol):
    """Hugging Face model that states whether it generates."""

    def can_generate(self) -> bool:
        """Return whether the model predicts next tokens."""
        ...


def huggingface_config(model: object) -> dict[str, Any] | None:
    """Return the fields of the configuration, None if the model is not one of Hugging Face."""
    if not isinstance(model, Configured) or not isinstance(model.config, Dictionary):
        return None
    return model.config.to_dict()


def from_huggingface(
    model: nn.Module, config: Mapping[str, Any], kind: Kind | None, vocab_size: int | tuple[int, int] | None
) -> ModelAdapter:
    """Return the adapter of a Hugging Face model; the model states whether it is a decoder.

    Raises:
        UsageError: its configuration has no vocab_size, nor has that of its parts.
    """
    if kind is None:
        generates = isinstance(model, Generating) and model.can_generate()
        kind = "encoder-decoder" if config.get("is_encoder_decoder") else "decoder" if generates else "encoder"
    reader, writer = ({**config, **known(config.get(part) or {})} for part in ("encoder", "decoder"))
    if isinstance(vocab_size, int):
        vocab_size = (vocab_size, vocab_size)
    sizes = vocab_size or (reader.get("vocab_size"), writer.get("decoder_vocab_size") or writer.get("vocab_size"))
    if not isinstance(sizes[0], int) or not isinstance(sizes[1], int):
        raise UsageError("vocab_size is missing, and the model's configuration has none.")
    starts = ("decoder_start_token_id", "bos_token_id") if kind == "encoder-decoder" else ("bos_token_id",)
    marks = [first_id(writer, names, sizes[1]) for names in (starts, ("eos_token_id",))]
    # A causal model without padding of its own is padded with anything: it has a mask.
    pad = first_id(reader, ("pad_token_id",), sizes[0])
    pad = sizes[0] - 1 if pad is None else pad

    def call(*ids: Tensor) -> Tensor:
        arguments: dict[str, Any] = {"input_ids": ids[0], "attention_mask": (ids[0] != pad).long()}
        if kind == "encoder-decoder":
            arguments["decoder_input_ids"] = ids[1]
        return tensor_of(model(**arguments))

    return ModelAdapter(
        kind,
        call,
        model,
        source_size=0 if kind == "decoder" else sizes[0],
        target_size=0 if kind == "encoder" else sizes[1],
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
