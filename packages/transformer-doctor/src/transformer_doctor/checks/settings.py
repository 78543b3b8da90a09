"""Compare a model with what its configuration and its signature say, and find layers that are one object."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.calls import run, trace_pass
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.checks.watched_optimizer import listed
from transformer_doctor.guesses import attributes
from transformer_doctor.huggingface import huggingface_config
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.module_state import held_tensors
from transformer_doctor.report import Finding
from transformer_doctor.signatures import words_of

SETTINGS = "layers of a list are different ones, and ties and dropout are as configured"
_TIED = {"tie", "tied", "tying"}
_RATE = {"dropout", "drop", "rate", "prob", "p"}  # words of settings that concern every dropout
_OTHER_TIES = {"encoder", "decoder", "projs", "layers"}  # words of settings that tie something else
# Activations that a setting may name, and torch functions of which one has to be called for them.
_ACTIVATIONS = {
    "relu": {"relu", "relu_", "clamp", "clamp_min", "maximum", "where"},
    "gelu": {"gelu", "erf", "tanh", "sigmoid"},
    "gelu_new": {"gelu", "tanh"},
    "silu": {"silu", "sigmoid"},
}
_HEADS = re.compile("^(?!.*(kv|key|value)).*heads?$")  # names of settings, but for those of grouped keys
_MOST_NORMS = 0.75  # share of norms that have another epsilon: those of queries and keys may have their own
_EPSILON, _EPSILONS = {"eps", "epsilon"}, ("eps", "variance_epsilon")  # words of settings, attributes of norms
_LAYER = re.compile(r"\D+\.\d+")  # name of a layer of a list that is not inside of another layer


def setting_findings(
    module: nn.Module, tracer: AttentionTracer, scores: Tensor, rates: set[float]
) -> Iterator[Finding]:
    """Yield findings about a module, from the trace of a pass, its scores, and the dropout rates in train()."""
    output = tracer.trace(scores).projection
    ties = [
        (name, value)
        for name, value in attributes(module)
        if isinstance(value, bool) and _TIED & {*words_of(name)} and not _OTHER_TIES & {*words_of(name)}
    ]
    tables = {
        lookup.table for lookup in tracer.lookups if any(lookup.ids is ids for ids in tracer.watched.values())
    }
    alike = {id(weight) for weight in module.parameters() if output and weight.shape == output.weight.shape}
    if output and ties and ties[0][1] and tables & alike and id(output.weight) not in tables:
        evidence = f"{ties[0][0]} is True, and the output matrix {tuple(output.weight.shape)} is not the embedding"
        yield model_finding("not-as-configured", evidence)
    configs = [getattr(value, "__dict__", value) for _, value in attributes(module) if not callable(value)]
    entries = [entry for config in configs if isinstance(config, Mapping) for entry in config.items()]
    stated = {name: value for name, value in entries if "drop" in str(name) and isinstance(value, float)}
    other = [f"{rate:g}" for rate in sorted(rates) if rate and rate not in stated.values()]
    # "attention_dropout" = 0 alone says nothing of the head of a classifier
    concerns_all = any(rate > 0 or {*words_of(str(name))} <= _RATE for name, rate in stated.items())
    if concerns_all and other:
        says = ", ".join(f"{name} = {value:g}" for name, value in stated.items())
        evidence = f"in train() dropout of {', '.join(other)} is active; the configuration states {says}"
        yield model_finding("not-as-configured", evidence)
    for evidence in _ignored_settings(entries, module, tracer):
        yield model_finding("not-as-configured", evidence)
    for name, part in module.named_modules():
        layers = list(filter(None, part)) if isinstance(part, (nn.ModuleList, nn.Sequential)) else []
        for layer, count in Counter(layers).most_common(1):
            if count > 1 and next(layer.parameters(), None) is not None:
                evidence = f"{count} of {len(layers)} layers of {name} are one {type(layer).__name__}"
                yield model_finding("layers-are-one-object", evidence)
                return
        for path, child in layers[0].named_modules() if len(set(layers)) > 1 else ():
            shared = [other for layer in layers for where, other in layer.named_modules() if where == path]
            if set(shared) == {child} and len(shared) == len(layers) and next(child.parameters(), None) is not None:
                evidence = f"{path} of {len(layers)} layers of {name} is one {type(child).__name__}"
                yield model_finding("layers-are-one-object", evidence, "note")
                return


def _ignored_settings(
    entries: Sequence[tuple[Any, Any]], module: nn.Module, tracer: AttentionTracer
) -> Iterator[str]:
    """Yield the evidence that no layer has the activation, the epsilon or the heads of the configuration."""
    activations = {
        f"{name} = {value}": _ACTIVATIONS[value]
        for name, value in entries
        if {"act", "activation"} & {*words_of(str(name))} and isinstance(value, str) and value in _ACTIVATIONS
    }
    if activations and not any(functions & tracer.functions for functions in activations.values()):
        yield f"{', '.join(activations)}, and the forward pass calls no such function"
    numbers = {str(name): value for name, value in entries if type(value) is float}
    small = {name: value for name, value in numbers.items() if _EPSILON & {*words_of(name)} and "norm" in name}
    held = [value for part in module.modules() for value in map(vars(part).get, _EPSILONS) if value is not None]
    other = [value for value in held if value not in small.values()]
    if small and len(other) > _MOST_NORMS * len(held):
        says = ", ".join(f"{name} = {value:g}" for name, value in small.items())
        yield f"{says}, and norms have {other[0]:g}"
    heads = {
        attention.heads
        for attention in tracer.attentions
        for layer in [attention.projection]
        if attention.fixed_scale or (layer and layer.width_out == attention.heads * attention.width)
    } - {1}  # heads may be modules
    stated = {name: value for name, value in entries if _HEADS.search(str(name)) and type(value) is int}
    if heads and stated and heads.isdisjoint(stated.values()) and huggingface_config(module) is None:
        says = ", ".join(f"{name} = {value}" for name, value in stated.items())
        yield f"{says}, and attentions have {max(heads)} heads"


def unused_findings(
    adapter: ModelAdapter, ids: Mapping[str, Tensor], tracer: AttentionTracer, scores: Tensor
) -> Iterator[Finding]:
    """Yield a finding about weights that do not enter the scores of a pass, a warning if they are a whole layer.

    They have no gradient by the scores, and other values of them change no score.
    """
    module = adapter.module
    assert module is not None
    weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
    with torch.enable_grad():
        traced = adapter(ids)
    if not traced.requires_grad:
        return
    gradients = torch.autograd.grad(traced.nan_to_num().sum(), [*weights.values()], allow_unused=True)
    unused = {id(weights[name]): name for name, found in zip(weights, gradients, strict=True) if found is None}
    # a part of a layer, or a norm: a pooling or a second output may be left to others
    norms = [name for name, part in module.named_modules() if "Norm" in type(part).__name__]
    lists = {name.rpartition(".")[0] for name in _attention_layers(module, tracer)}
    judged = tuple(f"{name}." for name in (*norms, *lists))
    unused = {key: name for key, name in unused.items() if name.startswith(judged) and "expert" not in name}
    with held_tensors(module, lambda tensor: tensor.data + 1 if id(tensor) in unused else None):
        if not unused or not torch.equal(scores.cpu(), run(adapter, ids)):
            return
    parts = [(name, part, {*map(id, part.parameters())}) for name, part in module.named_modules()]
    whole = {name: part for name, part, own in parts if own and own <= {*unused}}
    names = [
        name for name in (*whole, *unused.values()) if not any(name.startswith(f"{outer}.") for outer in whole)
    ]
    layers = [name for name in names if _LAYER.fullmatch(name) and name.rpartition(".")[0] in lists]
    evidence = f"{len(unused)} of {len(weights)} weights do not enter the scores: {listed(names)}"
    finding = model_finding("parameters-without-gradient", evidence, "warning" if layers else "note")
    yield in_case(replace(finding, check=SETTINGS), "adapters-unused")


def residual_findings(
    adapter: ModelAdapter, tracer: AttentionTracer, ids: Sequence[Mapping[str, Tensor]]
) -> Iterator[Finding]:
    """Yield a finding if layers have no residual connection, from two passes over different tokens.

    A decoder beside an encoder may lack one, and the class of a text may be read at a token of its own.
    """
    module = adapter.module
    assert module is not None
    if adapter.kind == "encoder-decoder" or run(adapter, ids[0]).size(1) == 1:
        return
    layers = _attention_layers(module, tracer)
    linear = [part for layer in layers.values() for part in layer.modules() if isinstance(part, nn.Linear)]
    zero = {id(weight) for part in linear for weight in part.parameters()}
    with held_tensors(module, lambda tensor: torch.zeros_like(tensor.data) if id(tensor) in zero else None):
        scores, others = (run(adapter, rows) for rows in ids)
    if zero and torch.equal(scores, others):
        evidence = f"with the linear layers inside of {listed([*layers])} set to 0, no token changes the scores"
        yield model_finding("residual-lost", evidence)


def _attention_layers(module: nn.Module, tracer: AttentionTracer) -> dict[str, nn.Module]:
    """Return the layers of a list that compute attention, by name."""
    attending = {id(attention.projection.weight) for attention in tracer.attentions if attention.projection}
    return {
        name: part
        for name, part in module.named_modules()
        if _LAYER.fullmatch(name) and ("Attention" in f"{part}" or attending & {*map(id, part.parameters())})
    }


def window_findings(adapter: ModelAdapter, samples: Samples, longest: int = 512) -> Iterator[Finding]:
    """Yield a finding if other layers attend within a window than the configuration of a decoder says."""
    stated: dict[str, Any] = dict([*attributes(adapter.module)][::-1])  # the outermost of a name last
    kinds, window = stated.get("layer_types") or (), stated.get("sliding_window")
    length = window + 3 if isinstance(window, int) and isinstance(kinds, (list, tuple)) else 0
    if adapter.kind != "decoder" or not 3 < length <= min(longest, adapter.stated_limit or longest):
        return
    attentions = trace_pass(adapter, samples.ids(batch=samples.smallest_batch, target=length))[0].attentions
    seen = [int((~covered_scores(attention)[..., -1, :]).sum(-1).max()) for attention in attentions]
    if seen and {*seen} == {length - 2}:
        evidence = f"sliding_window = {window}, and a token sees {length - 2} tokens, itself among them"
        yield model_finding("not-as-configured", evidence, "note")
    if len(attentions) != len(kinds):
        return
    wrong = []
    for number, (kind, attention) in enumerate(zip(kinds, attentions, strict=True)):
        hidden = covered_scores(attention)[..., -1, :2].all()  # of the last token, keys before the window
        if kind == ("full_attention" if hidden else "sliding_attention"):
            wrong.append(f"{number} ({kind})")
    if wrong:
        evidence = (
            f"of a text of {length} tokens and a window of {window}, layers hide others than layer_types says"
        )
        yield model_finding("not-as-configured", f"{evidence}: {', '.join(wrong)}")
