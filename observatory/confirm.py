"""Ask again, without the doctor's checks, whether a small model of the installed transformers has a defect.

Reads JSON from standard input, a list of [model, finding], and prints a list of answers on the last line, each an
object: the largest change of a score that should not change, as a part of their spread (0 where it is nothing but
rounding), by the way in which a cache was used, or by "". What a model cannot be asked is left out.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import sys
import warnings

import torch

from transformer_doctor.small_models import VOCABULARY, NotBuilt, small_model

ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-4}  # of the spread; the second where the first is not taken
LENGTH, SHORT = 9, 6
TEXT, PROMPT = 13, 5
SMALL, STRONG = 0.02, 4.0  # largest weight of a parameter that is made larger, and the factor of a matrix
CACHES = ("past_key_values", "cache", "cache_params", "state")  # names of the argument and of the output


def scores(model, ids, mask, target=None):
    """Return the scores of a model in float64."""
    inputs = {"input_ids": ids, "attention_mask": mask}
    if target is not None:
        inputs["decoder_input_ids"] = target
    output = model(**inputs)
    values = getattr(output, "logits", None)
    return (output[0] if values is None else values).double()


def pad_of(model):
    """Return the id of padding."""
    return getattr(model.config, "pad_token_id", None) or 0


def changed(rows, begin, end):
    """Return rows with other tokens from `begin` up to `end`."""
    other = rows.clone()
    other[:, begin:end] = 3 + (other[:, begin:end] - 3 + 5) % (VOCABULARY - 3)
    return other


def change_before(begin, model, ids, mask, target):
    """Return by how much other tokens from `begin` on change the scores before them."""
    if target is None:
        pair = [scores(model, rows, mask) for rows in (ids, changed(ids, begin, None))]
    else:
        pair = [scores(model, ids, mask, rows) for rows in (target, changed(target, begin, None))]
    return (pair[0] - pair[1])[:, :begin].abs().max().item()


def sees_the_future(model, ids, mask, target):
    """Other tokens at the end must not change the scores before them."""
    return max(change_before(begin, model, ids, mask, target) for begin in (2, SHORT))


def padding_mask_on_queries(model, ids, mask, target):
    """Beside padding too, other tokens at the end must not change the scores before them."""
    mask = mask.clone()
    mask[0, :2] = 0
    return change_before(SHORT, model, ids, mask, target)


def no_source_padding_mask(model, ids, mask, target):
    """Other tokens where the attention mask is 0 must not change the scores elsewhere."""
    mask = mask.clone()
    mask[:, SHORT:] = 0
    pair = [scores(model, rows, mask, target) for rows in (ids, changed(ids, SHORT, None))]
    kept = slice(None) if target is not None or pair[0].dim() == 2 else slice(SHORT)
    return (pair[0] - pair[1])[:, kept].abs().max().item()


def rows_mixed(model, ids, mask, target):
    """Another second row must not change the scores of the first."""
    other = ids.clone()
    other[1:] = changed(ids[1:], 1, None)
    pair = [scores(model, rows, mask, target) for rows in (ids, other)]
    return (pair[0] - pair[1])[0].abs().max().item()


def depends_on_the_batch(model, ids, mask, target):
    """A text alone must have the scores that it has beside a longer one, padded."""
    mask = mask.clone()
    mask[0, SHORT:] = 0
    padded = ids.masked_fill(mask == 0, pad_of(model))
    row = None if target is None else target[:1]
    together = scores(model, padded, mask, target)[:1]
    alone = scores(model, ids[:1, :SHORT], mask[:1, :SHORT], row)
    kept = slice(None) if target is not None or alone.dim() == 2 else slice(SHORT)
    return (together[:, kept] - alone).abs().max().item()


def cache_differs(model, ids, mask, target):
    """Scores with a cache must be those without, in pieces of any size, behind padding, reordered and cut.

    A change that is as large in single tokens is none of another way.
    """
    name = next(name for name in CACHES if name in inspect.signature(model.forward).parameters)
    ids, mask = ids.repeat(1, 2)[:, :TEXT], mask.repeat(1, 2)[:, :TEXT]
    rows = ids if target is None else target.repeat(1, 2)[:, :TEXT]
    order = torch.tensor([1, 1])

    def call(rows, mask, begin, end, cache):
        inputs = {"use_cache": cache is not False}
        if target is not None:
            inputs |= {"attention_mask": mask, "input_ids": ids[:1].expand_as(ids)}  # a beam has one source
        elif hasattr(model.config, "state_size"):
            inputs["attention_mask"] = mask[:, begin:end]  # Mamba takes the mask of these tokens alone
        elif not mask.all():
            inputs["attention_mask"] = mask[:, :end]
        inputs["input_ids" if target is None else "decoder_input_ids"] = rows[:, begin:end]
        output = model(**inputs, **({name: cache} if cache else {}))
        return output.logits.double(), getattr(output, name, None)

    def decode(rows, mask, sizes, begin=0, cache=None):
        parts = []
        for size in sizes:
            part, cache = call(rows, mask, begin, begin + size, cache)
            if cache is None:
                raise ValueError("the model makes no cache by itself")
            if len(part) != len(rows) or part.size(1) != size:
                return None, cache  # scores of another shape
            parts.append(part)
            begin += size
        return torch.cat(parts, 1), cache

    def change(rows, mask, parts):
        whole = call(rows, mask, 0, TEXT, False)[0]
        if parts is None:
            return 1.0
        kept = mask[:, -parts.size(1) :].bool() if target is None else slice(None)
        return (whole[:, -parts.size(1) :] - parts)[kept].abs().max().item()

    def after(reuse):
        """Decode the last tokens after a cache of the first ones was changed."""
        cache = decode(rows, mask, [PROMPT])[1]
        again, cache = reuse(cache)
        return change(again, mask, decode(again, mask, [1] * (TEXT - PROMPT), PROMPT, cache)[0])

    def reorder(cache):
        moved = torch.cat([rows[order, :PROMPT], rows[:, PROMPT:]], 1)
        if hasattr(cache, "reorder_cache"):
            cache.reorder_cache(order)
            return moved, cache
        return moved, model._reorder_cache(cache, order)

    def cut(cache):
        _, cache = decode(changed(rows, PROMPT, None), mask, [2], PROMPT, cache)
        cache.crop(-2)
        return rows, cache

    padded = mask.clone()
    padded[0, :2] = 0
    ways = {
        "one token at a time": lambda: change(rows, mask, decode(rows, mask, [1] * TEXT)[0]),
        "several tokens at a time": lambda: change(rows, mask, decode(rows, mask, [PROMPT, 7, 1])[0]),
        "reordered": lambda: after(reorder),
        "cut": lambda: after(cut),
    }
    if target is None and not hasattr(model.config, "state_size"):  # Mamba takes no mask beside its state
        pad = rows.masked_fill(padded == 0, pad_of(model))
        sizes = [PROMPT] + [1] * (TEXT - PROMPT)
        ways["behind padding on the left"] = lambda: change(pad, padded, decode(pad, padded, sizes)[0])
    changes = {}
    for words, way in ways.items():
        with contextlib.suppress(Exception):  # many models cannot be asked in each of these ways
            changes[words] = way()
    single = changes.get("one token at a time", 0.0)
    return {words: change if words == "one token at a time" or change > single else 0.0
            for words, change in changes.items()}  # fmt: skip


SHAPES_DIFFER = ("depends-on-the-batch", "cache-differs")  # elsewhere both calls are rounded in the same way
QUESTIONS = {
    "sees-the-future": sees_the_future,
    "padding-mask-on-queries": padding_mask_on_queries,
    "no-source-padding-mask": no_source_padding_mask,
    "rows-mixed": rows_mixed,
    "depends-on-the-batch": depends_on_the_batch,
    "cache-differs": cache_differs,
}


@torch.no_grad()
def answer(name, finding):
    """Return the changes that show a finding in a model, 0 if nothing changes, by way."""
    if finding not in QUESTIONS:
        return {}
    try:
        model = small_model(name).eval()
    except NotBuilt:
        return {}
    torch.manual_seed(2)
    for parameter in model.parameters():
        if (parameter.abs() < SMALL).all():  # keys of equal score would be chosen by chance
            parameter.normal_(std=0.1)
        elif finding not in SHAPES_DIFFER and parameter.dim() > 1:  # some leaks are small
            parameter.mul_(STRONG)
    ids = torch.randint(3, VOCABULARY, (2, LENGTH))
    target = torch.randint(3, VOCABULARY, (2, LENGTH)) if model.config.is_encoder_decoder else None
    mask = torch.ones_like(ids)
    if name.startswith("ForSequenceClassification") and target is not None:
        ids[:, SHORT - 1], target = model.config.eos_token_id, None  # the end of the text, which is classified
    with contextlib.suppress(AttributeError):
        model.set_experts_implementation("eager")  # others take no float64
    answers = {}
    for dtype, rounding in ROUNDING.items():
        try:
            values = scores(model.to(dtype), ids, mask, target)
            spread = (values.max() - values.min()).item()
            changes = QUESTIONS[finding](model, ids, mask, target)
        except Exception as error:
            print(f"{name}: {finding}: {dtype}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            continue
        changes = changes if isinstance(changes, dict) else {"": changes}
        if finding not in SHAPES_DIFFER:
            rounding = ROUNDING[torch.float64]
        shares = {way: change / spread for way, change in changes.items() if not math.isnan(change)}
        answers = {way: share if share > rounding else 0.0 for way, share in shares.items()} | answers
    return answers


def main():
    """Answer the questions of standard input."""
    warnings.simplefilter("ignore")
    print(json.dumps([answer(name, finding) for name, finding in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
