"""Compare a model with what its configuration and its signature say, and find layers that are one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import trace_pass
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.guesses import attributes
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Finding
from transformer_doctor.signatures import words_of

SETTINGS = "layers of a list are different ones, and ties and dropout are as configured"
_TIED = {"tie", "tied", "tying"}
_RATE = {"dropout", "drop", "rate", "prob", "p"}  # words of settings that concern every dropout
_OTHER_TIES = {"encoder", "decoder", "projs", "layers"}  # words of settings that tie something else


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


def window_findings(adapter: ModelAdapter, samples: Samples, longest: int = 512) -> Iterator[Finding]:
    """Yield a finding if other layers attend within a window than the configuration of a decoder says."""
    stated: dict[str, Any] = dict([*attributes(adapter.module)][::-1])  # the outermost of a name last
    kinds, window = stated.get("layer_types", ()), stated.get("sliding_window")
    length = window + 3 if isinstance(window, int) and isinstance(kinds, (list, tuple)) else 0
    if adapter.kind != "decoder" or not 3 < length <= min(longest, adapter.stated_limit or longest):
        return
    attentions = trace_pass(adapter, samples.ids(batch=samples.smallest_batch, target=length))[0].attentions
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
