"""Check the outputs of a model: the invariants B, C, D and N, and what its scores depend on.

Each check returns its evidence, a sentence with numbers, or None when all is well. Outputs are compared as numbers;
dependence is also read from gradients, which are exactly zero where there is none.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice

import torch
from torch import Tensor

from transformer_doctor.checks.calls import gradients, run
from transformer_doctor.checks.dependence import ignored_order, independence_of_all_tokens, probabilities
from transformer_doctor.model_adapter import ModelAdapter, Samples, error_of
from transformer_doctor.tolerances import NO_GRADIENT, change_of_most, percentage, relative_change

_BY = " by {} of their spread"
_MORE_PADDING = (3, 6)
_CUTS = (4, 0, 2)  # tokens that rows lack in turn: sorted by length, no row keeps its place
_LONGER, _BEYOND, _LONGEST = 40, 8, 1032  # tokens of a text after which another is scored again, or beyond a limit
_LONG = 13  # tokens of rows of unequal lengths, and of a target whose beginnings are scored alone
_SEVERAL = 4  # tokens of a text of which scores have to read more than one
LAST_CALL = "a text leaves nothing behind that changes the next one"
LONGER_ROWS = "results do not depend on longer rows in the batch"
ON_LENGTH = "without those that follow, the first {end} of {length} target tokens have scores that differ"
ON_LENGTH += " by {change} of their spread"
CAUSAL = "no position of the encoder has a gradient by later tokens, as in a decoder"
_WEAKEST_LEAK = 1e-6  # share of the largest gradient: rounding, as of Fourier transforms, is below it


def _randomness(adapter: ModelAdapter, samples: Samples) -> str | None:
    ids = samples.ids()
    with torch.no_grad():
        first, second = adapter(ids), adapter(ids, seed=1)
    evidence = "the same ids twice give scores that differ by {} of their spread"
    if adapter.module is None:
        evidence += "; the function names no module, so that eval() could not be called here: call it before"
    return _changed(first, second, adapter.tolerances.same_shape, evidence)


def _changed(before: Tensor, after: Tensor, tolerance: float, evidence: str) -> str | None:
    """Return the evidence, with the change in the place of {}, where scores differ by more than a tolerance."""
    change = relative_change(before, after)
    return None if change <= tolerance else evidence.format(percentage(change))


def _not_finite(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that scores at real positions are finite, without and with padding at the end."""
    ids, real = samples.ids(), samples.source if adapter.kind == "encoder" else samples.target
    passes = [(ids, real)]
    for side in adapter.sides if adapter.pad is not None else ():
        ids, real = samples.padded(ids, side, 2)
    passes += [(ids, real)] if adapter.pad is not None else []
    for ids, real in passes:
        scores = run(adapter, ids)[:, :real]
        bad = _no_numbers(scores)
        if bad:
            return f"{bad} of {scores.numel()} scores of real positions are NaN or infinite"
    return None


def _no_numbers(scores: Tensor) -> int:
    """Return how many scores (..., V) are NaN or infinite; -inf of a token at every position suppresses it."""
    suppressed = (scores == -torch.inf).flatten(0, -2).all(0)
    return scores.numel() if suppressed.all() else int((~scores[..., ~suppressed].isfinite()).sum())


def _dependence_on_the_future(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that tokens from t + 1 on change nothing up to t, in values and in gradients (invariant B)."""
    ids = samples.ids()
    scores, changed = run(adapter, ids), samples.others("target", ids["target"])
    length = ids["target"].size(1)
    for position in range(1, length):
        mixed = torch.cat([ids["target"][:, :position], changed[:, position:]], 1)
        evidence = (
            f"other target tokens from position {position + 1} on change the scores at positions 1 to {position}"
        )
        other, tolerance = run(adapter, ids | {"target": mixed}), adapter.tolerances.same_shape
        if found := _changed(scores[:, :position], other[:, :position], tolerance, evidence + _BY):
            return found
    for position, gradient in gradients(adapter, ids, "target", range(length - 1)):
        later = float(gradient[:, position + 1 :].abs().max())
        if later > _WEAKEST_LEAK * float(gradient.abs().max()):
            return f"the scores at position {position + 1} have a gradient of {later:.2g} by later target tokens"
    return None


def _padded_query(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that a padded position inside a target sees no later token (invariant C)."""
    ids = samples.ids()
    position, length = 2, ids["target"].size(1)
    target = ids["target"].clone()
    target[:, position] = adapter.pad or 0
    changed = target.clone()
    changed[:, position + 2 :] = samples.others("target", target)[:, position + 2 :]
    before, after = (run(adapter, ids | {"target": rows})[:, position] for rows in (target, changed))
    if _no_numbers(before):
        return "the scores at a padded target position are NaN or infinite"
    evidence = f"at a padded target position (3 of {length}), other tokens from position {position + 3} on"
    evidence += f" change the scores{_BY}: it sees the future"
    return _changed(before, after, adapter.tolerances.same_shape, evidence)


def _dependence_on_padding(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that real positions depend neither on the amount nor on the content of source padding (invariant C)."""
    ids, last = samples.ids(), adapter.sides[-1]
    for amount in () if samples.fixed_length else _MORE_PADDING:
        padded_ids, real = samples.padded(ids, "source", amount)
        scores = run(adapter, {**ids, "source": ids["source"][:, :real]})
        padded, evidence = run(adapter, padded_ids), f"{amount} more padded source positions change the scores{_BY}"
        if found := _changed(scores, padded[:, : scores.size(1)], adapter.tolerances.other_shape, evidence):
            return found
    padded_ids, length = samples.padded(ids, "source", _MORE_PADDING[0])
    real = length if last == "source" else ids[last].size(1)
    for _, gradient in gradients(adapter, padded_ids, "source", [slice(0, real)]):
        largest = float(gradient[:, length:].abs().max())
        if largest > NO_GRADIENT * float(gradient.abs().max()):
            return f"the scores have a gradient of {largest:.2g} by what is read at padded source positions"
    return None


def _dependence_on_neighbours(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Compare the rows of a batch with each of them alone, or repeated if the model takes no single row (D)."""
    ids, alone = samples.ids(), []
    for row in range(samples.batch):
        repeated = {side: rows[[row] * samples.smallest_batch] for side, rows in ids.items()}
        alone.append(run(adapter, repeated)[:1])
    evidence = f"rows alone give scores that differ{_BY} from those of the batch"
    return _changed(run(adapter, ids), torch.cat(alone), adapter.tolerances.other_shape, evidence)


def _dependence_on_longer_rows(adapter: ModelAdapter, samples: Samples, *, left: bool = False) -> str | None:
    """Compare rows of unequal lengths in a batch with each of them alone (invariants C, D).

    They are padded at the end; with `left` the texts of the first side are padded before their first token.
    """
    ids, found, tolerance = _long_ids(samples), dict[int, float](), adapter.tolerances.other_shape
    cuts, padded = [*islice(cycle(_CUTS), samples.batch)], dict(ids)
    for side in adapter.sides[:1] if left else adapter.sides:
        place = torch.arange(ids[side].size(1))
        real = (place if left else place.flip(0)) >= torch.tensor(cuts)[:, None]
        padded[side] = ids[side].where(real, adapter.pad or 0)
    together = run(adapter, padded)
    for row, cut in enumerate(cuts):
        parts = {side: rows[[row] * samples.smallest_batch] for side, rows in ids.items()}
        for side in adapter.sides[:1] if left else adapter.sides:
            parts[side] = parts[side][:, cut:] if left else parts[side][:, : parts[side].size(1) - cut]
        alone = run(adapter, parts)[:1]
        beside = together[row : row + 1, -alone.size(1) :] if left else together[row : row + 1, : alone.size(1)]
        change = change_of_most(alone, beside, tolerance)
        found |= {row + 1: change} if change > tolerance else {}
    if len(found) < min(2, sum(map(bool, cuts))):  # a choice among equally good keys may differ in one
        return None
    tokens = ", ".join(str(ids[adapter.sides[0 if left else -1]].size(1) - cut) for cut in cuts)
    evidence = f"in a batch of rows of {tokens} tokens,{' padded before the text,' * left} rows"
    evidence += f" {' and '.join(map(str, found))} have scores that differ{_BY} from those of each row alone"
    return evidence.format(percentage(max(found.values())))


def _dependence_on_the_last_call(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that a longer text leaves nothing behind that changes the next one, where the same text does not."""
    length = min(max(_LONGER, (adapter.stated_limit or 0) + _BEYOND), _LONGEST)
    ids, longer = samples.ids(), samples.ids(batch=samples.smallest_batch, source=length, target=length)
    keeping = replace(adapter, state=None)
    adapter.restore()
    first, again = run(keeping, ids), run(keeping, ids)
    if error_of(keeping, longer) is not None or relative_change(first, again) > 0:
        return None
    evidence = f"after a text of {length} tokens the same ids give scores that differ{_BY} from those before it"
    return _changed(first, run(keeping, ids), adapter.tolerances.same_shape, evidence)


def _long_ids(samples: Samples) -> dict[str, Tensor]:
    return samples.ids(source=_LONG, target=_LONG) if samples.longer else samples.ids()


def _dependence_on_the_length(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that the tokens of a target have the scores that they have when nothing follows (invariant B)."""
    ids = _long_ids(samples)
    scores, length = run(adapter, ids), ids["target"].size(1)
    for end in (length - 1, length // 2, 2):
        part = run(adapter, ids | {"target": ids["target"][:, :end]})
        change = change_of_most(scores[:, :end], part, adapter.tolerances.other_shape)
        if change > adapter.tolerances.other_shape:
            return ON_LENGTH.format(end=end, length=length, change=percentage(change))
    return None


def _unread_tokens(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check by gradients that the scores of an encoder depend on other tokens, before and after their own."""
    ids = samples.ids()
    length, ends = ids["source"].size(1), (0, run(adapter, ids).size(1) - 1)
    read = []  # by position of the scores, the numbers of the tokens that have a gradient
    for _, gradient in gradients(adapter, ids, "source", ends):
        strength = gradient.abs().amax((0, 2))
        read.append([*map(int, (strength > NO_GRADIENT * strength.max()).nonzero())])
    if len(read) < 2 or length < _SEVERAL or not all(read):
        return None
    if ends[1] == 0 and len(read[0]) == 1:
        return f"of {length} tokens the scores of the classes have a gradient by token {read[0][0] + 1} alone"
    if ends[1] == length - 1 and read == [[0], [length - 1]]:
        return "the scores of the first and of the last position have a gradient by their own token alone"
    if ends[1] == length - 1 and read[0] == [0]:
        return CAUSAL
    return None


def _independence_of_the_source(adapter: ModelAdapter, samples: Samples) -> str | None:
    ids = samples.ids()
    others = {**ids, "source": samples.others("source", ids["source"])}
    if relative_change(run(adapter, ids), run(adapter, others)) > 0:
        return None
    for _, gradient in gradients(adapter, ids, "source", [slice(None)]):
        if gradient.any():  # too small for the precision of the scores
            return None
    return "all source tokens replaced by others change no score at all"


@dataclass(frozen=True)
class OutputCheck:
    """Check of the outputs of a model in eval().

    Attributes:
        symptom: name under which the evidence is stored; the name of a finding where the evidence alone shows it.
        sentence: statement that is true of a sound model, as the report lists it.
        observe: function that calls a model with samples and returns the evidence, None where all is well.
        needs: conditions of the check: sides of the model, an id of padding, a request for left padding, float32,
            texts of several lengths; and whether it is a comparison, made in float64 where the model is small.
    """

    symptom: str
    sentence: str
    observe: Callable[[ModelAdapter, Samples], str | None]
    needs: tuple[str, ...] = ()

    def obstacle(self, adapter: ModelAdapter, samples: Samples, *, left_padding: bool) -> str | None:
        """Return why the check cannot be made of a model, empty where it can, None where it does not apply."""
        if not {"source", "target", "encoder"} & {*self.needs} <= {*adapter.sides, adapter.kind}:
            return None
        if "lengths" in self.needs and samples.fixed_length:
            return "the model takes texts of one length alone"
        if "exact" in self.needs and not adapter.tolerances.exact:
            return "the model computes in half precision"
        if "left_padding" in self.needs and not left_padding:
            return "left_padding=True asks for it"
        return "pad was not given" if "pad" in self.needs and adapter.pad is None else ""


OUTPUT_CHECKS = (
    OutputCheck("constant-scores", "scores depend on the tokens", independence_of_all_tokens),
    OutputCheck("random", "eval() makes the model deterministic", _randomness),
    OutputCheck("last_call", LAST_CALL, _dependence_on_the_last_call,
                ("lengths",)),
    OutputCheck("not_finite", "scores are numbers", _not_finite),
    OutputCheck("scores-are-probabilities", "scores are not normalised by a softmax", probabilities),
    OutputCheck("future", "no position depends on later target tokens", _dependence_on_the_future,
                ("target", "comparison")),
    OutputCheck("padded_query", "padded target positions do not see the future", _padded_query, ("target", "pad")),
    OutputCheck("padding", "results do not depend on source padding", _dependence_on_padding,
                ("source", "pad", "comparison")),
    OutputCheck("left_padding", "results do not depend on padding before the text",
                partial(_dependence_on_longer_rows, left=True), ("left_padding", "pad", "comparison")),
    OutputCheck("neighbours", "results do not depend on the rest of the batch", _dependence_on_neighbours,
                ("comparison",)),
    OutputCheck("longer_rows", LONGER_ROWS, _dependence_on_longer_rows,
                ("pad", "lengths", "comparison")),
    OutputCheck("depends-on-the-length", "scores do not depend on the number of tokens that follow",
                _dependence_on_the_length, ("target", "lengths", "comparison")),
    OutputCheck("unread", "scores depend on the source", _independence_of_the_source, ("source", "target")),
    OutputCheck("no-positions", "scores depend on the order of the tokens", ignored_order, ("exact",)),
    OutputCheck("tokens-not-read", "scores of an encoder depend on tokens before and after their own",
                _unread_tokens, ("encoder",)),
)  # fmt: skip
# Symptoms that are findings by themselves.
STANDALONE_SYMPTOMS = ("constant-scores", "scores-are-probabilities", "no-positions", "tokens-not-read")
