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

from manyheads.doctor.holding import device_of, module_in
from manyheads.doctor.huggingface import from_huggingface, huggingface_config
from manyheads.doctor.patient import Kind, Patient, tensor_of
from manyheads.errors import ManyheadsError, UsageError

__all__ = ["Masks", "admit", "tried"]

Masks = Callable[..., Sequence[Any]]


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
    module = module_in(model)
    config = huggingface_config(model)
    if config is not None:
        patient = from_huggingface(model, config, kind, vocab_size)
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


def plain_call(model: Any, kind: Kind, masks: Masks | None, time_first: bool) -> Callable[..., Tensor]:
    """A function of ids, whatever the model is."""
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
    elif isinstance(model, TwoParts):
        function = two_parts(model)
    else:
        raise UsageError(
            f"{type(model).__name__} can neither be called nor has it encode and decode. Examine a module, or a "
            f"function: {as_function(kind)}."
        )

    def call(*ids: Tensor) -> Tensor:
        turned = [rows.t() for rows in ids] if time_first else list(ids)
        scores = tensor_of(function(*turned, *(masks(*turned) if masks else ())))
        if time_first and scores.dim() == 2 and len(scores) == turned[-1].numel():
            scores = scores.unflatten(0, turned[-1].shape)
        return scores.transpose(0, 1) if time_first and scores.dim() == 3 else scores

    return call


def as_function(kind: Kind) -> str:
    """How a model of any signature can be given."""
    ids = {"encoder-decoder": "source, target", "encoder": "source", "decoder": "target"}[kind]
    return f"lambda {ids}: model(...), all arguments by name"


def tried(patient: Patient, ids: Mapping[str, Tensor]) -> None:
    """Call a model once.

    Raises:
        UsageError: it cannot be called so, or returns no scores; the message says what to give instead.
    """
    try:
        with torch.no_grad():
            patient(ids)
    except ManyheadsError:
        raise
    except Exception as error:  # any: whatever somebody's model raises
        shapes = " and ".join(f"{side} ids {tuple(rows.shape)}" for side, rows in ids.items())
        sizes = " and ".join(f"{int(rows.max())} on the {side} side" for side, rows in ids.items())
        too_large = isinstance(error, IndexError)
        cures = [
            f"Ids went up to {sizes}: see whether vocab_size, a number or (source, target), is right."
            if too_large
            else f'If it reads one sequence, say kind="encoder" or "decoder" (here: "{patient.kind}"); if it wants '
            "the time first, time_first=True; if masks, masks=a function of the ids.",
            f"Else examine a function: {as_function(patient.kind)}.",
        ]
        message = str(error).partition("\n")[0].rstrip(".")
        raise UsageError(
            f"the model was called with {shapes} and raised {type(error).__name__}: {message}. {' '.join(cures)}"
        ) from error


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
