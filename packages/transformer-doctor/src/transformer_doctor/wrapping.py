"""Wrap a user's model: a module, a function, an object with encode and decode, a Hugging Face model.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.caching import find_cached_call
from transformer_doctor.call_search import CallSearch, FoundCall, judge, masks_wanted
from transformer_doctor.calling import Callee, CallForm, as_function, batch_first, callee_of, caller
from transformer_doctor.errors import UsageError, describe_error, headline, is_for_users
from transformer_doctor.guesses import attributes, guess_missing_marks, guess_sizes, safe_size
from transformer_doctor.huggingface import from_huggingface, huggingface_config
from transformer_doctor.model_adapter import SIDES, Kind, ModelAdapter, device_of, find_modules, restore_modes
from transformer_doctor.module_state import ModuleState
from transformer_doctor.signatures import Role, parameters_of, role_of

_NO_SIZE = "vocab_size is missing: the number of token ids, or a pair (source, target)."
_FILLED: Sequence[Role] = ("segments", "positions", "flag", "start", "state")
Masks = Callable[..., Sequence[Any] | Mapping[str, Any]]
# Modules of torch that take embeddings in the place of ids.
_WITHOUT_EMBEDDINGS = (
    nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer, nn.MultiheadAttention,
)  # fmt: skip


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
    left_padding: bool = False,
) -> ModelAdapter:
    """Return the adapter of a model; find out how to call it and, without vocab_size, guess sizes and marks."""
    model, remarks = _unwrap(model)
    _refuse(model)
    config = huggingface_config(model)
    if config is not None:
        adapter = from_huggingface(model, config, kind, vocab_size)
        given = {name: mark for name, mark in {"pad": pad, "bos": bos, "eos": eos}.items() if mark is not None}
        return replace(adapter, **given, remarks=(*remarks, *adapter.remarks))  # type: ignore[arg-type]
    module = find_modules(model)
    with warnings.catch_warnings(), restore_modes(module), run_eagerly():
        warnings.simplefilter("ignore")  # warnings of calls that are tried
        if module is not None:
            module.eval()
        sizes = (vocab_size, vocab_size) if isinstance(vocab_size, int) else vocab_size
        marks, form, state = (
            {"pad": pad, "bos": bos, "eos": eos},
            CallForm(time_first=time_first, left_padding=left_padding),
            ModuleState(module),
        )
        try:
            adapter = _Wrapping(model, module, sizes, marks, masks, form, state).adapter(kind)
        finally:
            state.restore()
    return replace(adapter, remarks=(*remarks, *adapter.remarks))


def _unwrap(model: Any) -> tuple[Any, list[str]]:
    remarks = []
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            remarks.append(f"the module inside of {type(model).__name__} was examined")
            model = model.module
        elif isinstance(model, nn.Module) and isinstance(getattr(model, "_orig_mod", None), nn.Module):
            remarks.append("the model is compiled; its original was examined")
            model = model._orig_mod
        else:
            return model, remarks


def _refuse(model: Any) -> None:
    if isinstance(model, partial) and isinstance(model.func, type):
        raise UsageError("the model is a partial of a class. Examine what it returns: call it first.")
    if isinstance(model, type):
        needed = [parameter.name for parameter in parameters_of(model) or () if parameter.required]
        raise UsageError(
            f"{model.__name__} is a class. Examine an instance: {model.__name__}({', '.join(needed)})."
        )
    forward = inspect.getattr_static(type(model), "forward", None)
    lacks_embeddings = any(forward is kind.forward for kind in _WITHOUT_EMBEDDINGS)
    if lacks_embeddings and not any(isinstance(part, nn.Embedding) for part in model.modules()):
        raise UsageError(
            f"nn.{type(model).__name__} has no embeddings and no output layer, so it takes no token ids. Examine "
            "the module that holds all three, with forward(source_ids, target_ids) -> logits."
        )
    if inspect.isfunction(model) and parameters_of(model) == []:
        raise UsageError(
            f"{model.__name__} takes no arguments, so it cannot be called with token ids. If it makes the model, "
            f"examine what it returns: {model.__name__}()."
        )
    if isinstance(model, nn.Module) and any(weight.is_meta for weight in model.parameters()):
        raise UsageError(
            "the weights are on the device meta, where they have no values. Load them, or call "
            'model.to_empty(device="cpu") and initialise them.'
        )


@dataclass(frozen=True)
class _Wrapping:
    """Search for the way in which a model is called, for one kind of model after the other; see `examine`."""

    model: Any
    module: nn.Module | None
    sizes: tuple[int, int] | None
    marks: Mapping[str, int | None]
    masks: Masks | None
    form: CallForm
    state: ModuleState

    def adapter(self, kind: Kind | None) -> ModelAdapter:
        """Return the adapter of the model; its call raises the model's error if no form of a call works."""
        if kind is not None:
            return self.result(self.find(kind), kind)
        outcomes: list[FoundCall | Exception] = []
        kinds = self.possible_kinds()
        for kind in kinds:
            outcome = self.find(kind)
            if kind == "decoder":
                outcome, kind = self.one_sided(outcome)
            if isinstance(outcome, FoundCall):
                return self.result(outcome, kind)
            outcomes.append(outcome)
        return self.result(outcomes[0], kinds[0])

    def possible_kinds(self) -> Sequence[Kind]:
        """Return the kinds that a model may have by its arguments, the likelier one first."""
        sides = SIDES["encoder-decoder"]
        arguments = callee_of(self.model, sides).arguments
        if arguments is None:
            return "encoder-decoder", "decoder"
        texts = [(parameter, role_of(parameter.name, sides)) for parameter, role in arguments if role in sides]
        if len(texts) < 2:
            return "decoder", "encoder-decoder"
        (first, first_role), (second, second_role) = texts
        if (second_role == "label" and first_role != "source") or first.name == "x":  # the labels of a decoder
            return ("encoder-decoder", "decoder") if second.required else ("decoder", "encoder-decoder")
        both = second.required or second_role == "target"
        return ("encoder-decoder",) if both else ("decoder", "encoder-decoder")

    def one_sided(self, decoder: FoundCall | Exception) -> tuple[FoundCall | Exception, Kind]:
        """Return the call of a model that reads one text, and whether it is a decoder or an encoder.

        Raises:
            UsageError: the model may be either.
        """
        encoder = self.find("encoder")
        if not isinstance(encoder, FoundCall):
            return decoder, "decoder"
        if not isinstance(decoder, FoundCall) or encoder.scores.size(-1) != decoder.adapter.sizes[1]:
            return encoder.remark('kind = "encoder": its scores are not those of tokens'), "encoder"
        if decoder.form.labels:
            return decoder.remark(
                'kind = "decoder": it scores the last position alone, unless labels are given'
            ), "decoder"
        if decoder.sound["future"] and decoder.form.style is None:
            return decoder.remark(
                'kind = "decoder": it reads one text, and no position depends on later ones'
            ), "decoder"
        raise UsageError(
            'the model reads one text; say what it is: kind="encoder" where a position may depend on later ones, '
            'kind="decoder" where it predicts the next token.'
        )

    def find(self, kind: Kind) -> FoundCall | Exception:
        """Return the best call of a model as a kind, or the error of the first one if all raise errors."""
        callee = callee_of(self.model, SIDES[kind])
        size = safe_size(self.module)
        adapter = replace(
            self.called(self.call_given(callee, kind), kind, self.sizes or (size, size)),
            stated_limit=_stated_limit(self.module),
        )
        remarks = []
        if self.sizes is None:
            probe = self.search(adapter, callee, width=None)
            sizes = None if isinstance(probe, Exception) else guess_sizes(probe.adapter)
            if sizes is None:
                return probe if isinstance(probe, Exception) else UsageError(_NO_SIZE)
            adapter = replace(adapter, sizes=sizes)
            shown = f"{sizes[0]}" if sizes[0] == sizes[1] or kind != "encoder-decoder" else f"{sizes}"
            remarks.append(f"vocab_size = {shown}, guessed from the embeddings that are looked up")
            marks, guesses = guess_missing_marks(self.model, self.module, self.marks, min(sizes))
            adapter = replace(adapter, pad=marks["pad"], bos=marks["bos"], eos=marks["eos"])
            remarks += guesses
        outcome = self.search(adapter, callee, width=adapter.sizes[-1])
        if isinstance(outcome, Exception):
            return outcome
        cached = None if self.masks is not None else partial(find_cached_call, self.model, callee, outcome.form)
        outcome = replace(outcome, adapter=replace(outcome.adapter, cached=cached))
        return outcome.remark(*remarks, *self.form_remarks(outcome.form, callee))

    def search(self, adapter: ModelAdapter, callee: Callee, width: int | None) -> FoundCall | Exception:
        """Return the best call of a model; with masks of the user there is one form only."""
        if self.masks is None:
            return CallSearch(adapter, callee, width).find(self.form)
        return judge(adapter, self.form)

    def call_given(self, callee: Callee, kind: Kind) -> Callable[..., Tensor]:
        """Return the call of a model with the masks of the user, or without masks if there are none."""
        if self.masks is None:
            return caller(callee, SIDES[kind], self.form, None, None)
        masks, time_first = self.masks, self.form.time_first

        def call(*ids: Tensor) -> Tensor:
            ids = tuple(rows.t() for rows in ids) if time_first else ids
            made = masks(*ids)
            if isinstance(made, Mapping):
                by_side = dict(zip(SIDES[kind], ids, strict=True))
                values = {
                    parameter.name: by_side[role] for parameter, role in callee.arguments or () if role in by_side
                }
                output = callee.call({**values, **made})
            else:
                output = callee.function(*ids, *made)
            return batch_first(output, ids[-1], self.sizes and self.sizes[-1], time_first=time_first)

        return call

    def form_remarks(self, form: CallForm, callee: Callee) -> Iterator[str]:
        masks = {name: role for name, role in callee.aids().items() if role.endswith("mask")}
        if form.style is not None and masks:
            yield f"masks were made from pad: {form.style.describe(masks)}; where yours are others, give masks="
        if form.time_first and not self.form.time_first:
            yield "ids are given with the time first, (S, B): with the batch first, rows influence each other"
        if form.container != "arguments":
            yield f"ids are given in one {form.container}"
        labels = [arg.name for arg, role in callee.arguments or () if role == "label"]
        if form.labels:
            yield f"the ids are also given as {labels[0]}, so that every position is scored"
        placed = ["positions"] if form.placed else []
        others = [arg.name for arg, role in callee.arguments or () if role in (_FILLED if arg.required else placed)]
        if others and form.container == "arguments":
            yield f"{', '.join(others)} were filled with zeros, positions counted from 0, False or None"

    def result(self, outcome: FoundCall | Exception, kind: Kind) -> ModelAdapter:
        """Return the adapter of a call; if all raise errors, of the plain call, for ids of other sizes.

        Raises:
            UsageError: an argument or the number of ids is unknown.
        """
        if isinstance(outcome, FoundCall):
            return outcome.adapter
        callee = callee_of(self.model, SIDES[kind])
        if self.masks is None and (callee.unknown() or callee.aids(required=True)):
            raise UsageError(masks_wanted(callee, SIDES[kind]))
        if self.sizes is None:
            raise UsageError(f"{_NO_SIZE} The model was tried with few ids, and raised {describe_error(outcome)}.")
        plain = self.call_given(callee, kind)

        def call(*ids: Tensor) -> Tensor:
            try:
                return plain(*ids)  # ids of other sizes, or weights of another precision, may do
            except Exception:  # any exception of the user's model
                raise outcome from None

        return self.called(call, kind, self.sizes)

    def called(self, call: Callable[..., Tensor], kind: Kind, sizes: tuple[int, int]) -> ModelAdapter:
        pad, bos, eos = (self.marks[name] for name in ("pad", "bos", "eos"))
        return ModelAdapter(
            kind, call, self.module, sizes, pad, bos, eos, device=device_of(self.module), state=self.state
        )


def run_eagerly() -> AbstractContextManager[object]:
    """Return a context in which compiled functions run uncompiled, so that their operations are seen."""
    compiles = "torch._dynamo" in sys.modules  # which takes seconds to import
    return torch.compiler.set_stance("force_eager") if compiles else nullcontext()


def check_call(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> None:
    """Call a model once.

    Raises:
        UsageError: the call raises an error or returns no scores; the message says what to give instead.
    """
    try:
        with torch.no_grad():
            adapter(ids)
    except Exception as error:  # any exception of the user's model
        if is_for_users(error):
            raise
        shapes = " and ".join(f"{side} ids {tuple(rows.shape)}" for side, rows in ids.items())
        sizes = " and ".join(f"{int(rows.max())} on the {side} side" for side, rows in ids.items())
        too_large = isinstance(error, IndexError)
        cures = [
            f"Ids went up to {sizes}: see whether vocab_size, a number or (source, target), is right."
            if too_large
            else f'If it reads one sequence, say kind="encoder" or "decoder" (here: "{adapter.kind}"); if it wants '
            "the time first, time_first=True; if masks, masks=a function of the ids.",
            f"Else examine a function: {as_function(adapter.sides)}.",
        ]
        raise UsageError(
            f"the model was called with {shapes} and raised {headline(error)}. {' '.join(cures)}"
        ) from error


def _stated_limit(module: nn.Module | None) -> int | None:
    """Return the smallest limit of length that the modules or their configurations state under a usual name."""
    names = (
        "max_length", "max_len", "max_seq_len", "max_positions", "max_position_embeddings", "block_size",
        "n_positions", "max_source_positions", "max_target_positions",
    )  # fmt: skip
    stated = [value for name, value in attributes(module) if name in names and type(value) is int and value > 0]
    return min(stated, default=None)
