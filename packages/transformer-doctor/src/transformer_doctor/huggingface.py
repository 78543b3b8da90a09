"""Wrap a Hugging Face model, whose configuration states its kind, sizes and marks.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.caching import NO_CACHE, CachedCall, Continuation, differs_and_depends
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import Kind, ModelAdapter, Samples, device_of
from transformer_doctor.model_output import tensor_of
from transformer_doctor.signatures import parameters_of, role_of

# Fields of configurations that state the longest text, as max_target_positions; not max_relative_positions.
_LENGTH_SETTING = re.compile(
    r"max_((source|target|encoder|decoder)_)?position(s|_embeddings)|max_seq_len|n_positions"
)


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
        UsageError: the model takes no input_ids, or vocab_size is missing from its configuration.
    """
    accepted = [parameter.name for parameter in parameters_of(model) or ()]
    if accepted and "input_ids" not in accepted:
        raise UsageError(
            f"{type(model).__name__} takes {', '.join(sorted(accepted)[:3])} and no input_ids: the doctor examines "
            "models of token ids. Examine its text model."
        )
    kind = kind or _stated_kind(model, config)
    parts = ("encoder", "decoder") if kind == "encoder-decoder" else ("text_config", "text_config")
    reader, writer = (
        {**config, **{name: value for name, value in (config.get(part) or {}).items() if value is not None}}
        for part in parts
    )
    if isinstance(vocab_size, int):
        vocab_size = (vocab_size, vocab_size)
    stated = (reader.get("vocab_size"), writer.get("decoder_vocab_size") or writer.get("vocab_size"))
    tables = (_table_size(model.get_input_embeddings), _table_size(model.get_output_embeddings))
    source_size, target_size = vocab_size or tuple(size or rows for size, rows in zip(stated, tables, strict=True))
    if not isinstance(source_size, int) or not isinstance(target_size, int):
        raise UsageError("vocab_size is missing, and the model's configuration has none.")
    starts = ("decoder_start_token_id", "bos_token_id") if kind == "encoder-decoder" else ("bos_token_id",)
    marks = [_first_id(writer, names, target_size) for names in (starts, ("eos_token_id",))]
    remarks = []
    pad = _first_id(reader, ("pad_token_id",), source_size)
    if pad is None:  # without a padding id any id can pad: the attention mask hides it
        pad = source_size - 1
        remarks.append(f"pad = {pad}: the configuration states none, and an attention mask hides it")

    begins = kind == "decoder" and marks[0] == pad
    ends = marks[1] if kind == "encoder" and "decoder_input_ids" in accepted else None

    def call_model(*ids: Tensor, first: int = 0, real: Tensor | None = None, **further: Any) -> Any:
        source = ids[0]
        if ends is not None:  # it reads the state of the last token, the end mark
            source = source.scatter(1, ((source != pad).sum(1, keepdim=True) - 1).clamp_min(0), ends)
        if real is None:
            real = source != pad
            real[:, 0] |= begins
        real = real.to(source.device)
        arguments: dict[str, Any] = {"input_ids": source if kind == "encoder-decoder" else source[:, first:]}
        if not accepted or "attention_mask" in accepted:
            arguments["attention_mask"] = real.long()
        if kind == "encoder-decoder":
            arguments["decoder_input_ids"] = ids[1][:, first:]
        if "use_cache" not in accepted:
            further.pop("use_cache", None)
        return model(**arguments, **further)

    def call(*ids: Tensor) -> Tensor:  # some models leave out the causal mask when they fill a KV cache
        return tensor_of(call_model(*ids, use_cache=False), None if kind == "encoder" else target_size)

    return ModelAdapter(
        kind,
        call,
        model,
        (source_size, target_size),
        pad=pad,
        bos=marks[0],
        eos=marks[1],
        stated_limit=_limit_of(model, (reader, writer)),
        device=device_of(model),
        remarks=tuple(remarks),
        cached=None if kind == "encoder" else partial(_cached_call, model, accepted, call_model),
    )


def _cached_call(
    model: Any, accepted: Sequence[str], call_model: Callable[..., Any], adapter: ModelAdapter, samples: Samples
) -> CachedCall | None:
    """Return the calls of a decoder with its cache and without; None where they are not understood.

    The mask of a call with a cache covers all tokens so far; some state-space models want that of the new ones.

    Raises:
        UsageError: the model takes no cache.
    """
    name = next((name for name in accepted if role_of(name, ("target",)) == "state"), None)
    if name is None:
        raise UsageError(NO_CACHE)
    positions = "decoder_position_ids" if adapter.kind == "encoder-decoder" else "position_ids"
    library: Any = sys.modules.get("transformers")

    def output_of(item: Continuation, **further: Any) -> Any:
        if item.positions is not None:
            further[positions] = item.positions[:, item.first :].to(adapter.device)
        ids = [rows.to(adapter.device) for rows in item.ids.values()]
        return call_model(*ids, first=item.first, real=item.real, **further)

    def step(item: Continuation) -> tuple[Tensor, Any]:
        output = output_of(item, use_cache=True, **({} if item.cache is None else {name: item.cache}))
        cache = getattr(output, name, None)
        if cache is None:
            raise UsageError(f"the model takes {name}, and returns none")
        return tensor_of(output, adapter.sizes[1]), cache

    def step_of_a_state(item: Continuation) -> tuple[Tensor, Any]:
        real = torch.ones_like(item.ids["target"]) if item.real is None else item.real
        return step(replace(item, real=real[:, item.first :]))

    def plain(item: Continuation) -> Tensor:
        return tensor_of(output_of(item, use_cache=False), adapter.sizes[1])

    def empty(length: int) -> Any:
        config = model.config.get_text_config(decoder=True)
        caches = [library.StaticCache(config=config, max_cache_len=size) for size in (length, samples.source)]
        return caches[0] if adapter.kind == "decoder" else library.EncoderDecoderCache(*caches)

    fixed = empty if getattr(model, "_can_compile_fullgraph", False) else None
    call = CachedCall(step, plain, model, takes_positions=positions in accepted, static=fixed, cut=_cut)
    calls = [call, replace(call, step=step_of_a_state)] if getattr(model, "_is_stateful", False) else []
    return next((form for form in calls if not differs_and_depends(form, adapter, samples)[0]), call)


def _cut(cache: Any, tokens: int) -> Any:
    """Cut tokens off a cache of transformers.

    Raises:
        UsageError: the cache says that it cannot be cut, as one of a state or a window.
    """
    if not getattr(cache, "is_croppable", hasattr(cache, "crop")):
        raise UsageError(f"a {type(cache).__name__} of this model cannot be cut")
    cache.crop(-tokens)
    return cache


def _table_size(layer: Callable[[], Any]) -> int | None:
    try:
        return int(layer().weight.size(0))
    except (AttributeError, NotImplementedError):
        return None


def _stated_kind(model: Any, config: Mapping[str, Any]) -> Kind:
    """Return the kind of a model: a model that generates is a decoder, unless its layers state otherwise.

    An encoder-decoder that classifies feeds its decoder the text itself: it reads one sequence.
    """
    if config.get("is_encoder_decoder"):
        classifies = any(base.__name__.endswith("Classification") for base in type(model).__mro__)
        return "encoder" if classifies else "encoder-decoder"
    flags = [vars(part)["is_decoder"] for part in model.modules() if "is_decoder" in vars(part)]
    generates = hasattr(model, "can_generate") and bool(model.can_generate())
    return "decoder" if generates and (any(flags) or not flags) else "encoder"


def _first_id(config: Mapping[str, Any], names: Sequence[str], size: int) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and 0 <= value < size), None)


def _limit_of(model: nn.Module, configs: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the longest text in tokens that the configurations state, or None.

    RoBERTa numbers positions from padding_idx + 1 on: the rows before are never used.
    """
    stated = [entry for config in configs for entry in config.items() if _LENGTH_SETTING.fullmatch(entry[0])]
    limit = min((value for _, value in stated if value), default=None)
    used = [
        part.num_embeddings - part.padding_idx - 1
        for part in model.modules()
        if isinstance(part, nn.Embedding) and part.num_embeddings == limit and part.padding_idx is not None
    ]
    return min(used, default=limit)
