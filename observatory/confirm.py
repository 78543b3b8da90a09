"""Ask again, without the doctor, whether a small model of the installed transformers has a defect.

Reads JSON from standard input, a list of [model, finding], and prints a list of answers on the last line: a number
(the largest change of a score that should not change), or null where no question is written for the finding or the
change is nothing but rounding. The whole computation is in float64.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings

import torch
from benchmarks.doctor_trial import library_models, sound

ROUNDING = 1e-9
LENGTH, SHORT = 9, 6


def scores(model, ids, mask, target=None):
    """Return the scores of a model in float64."""
    inputs = {"input_ids": ids, "attention_mask": mask}
    if target is not None:
        inputs["decoder_input_ids"] = target
    output = model(**inputs)
    values = getattr(output, "logits", None)
    return (output[0] if values is None else values).double()


def changed(rows, begin, end):
    """Return rows with other tokens from `begin` up to `end`."""
    other = rows.clone()
    other[:, begin:end] = 3 + (other[:, begin:end] - 3 + 5) % (library_models.VOCABULARY - 3)
    return other


def sees_the_future(model, ids, mask, target):
    """Other tokens at the end must not change the scores before them."""
    if target is None:
        pair = [scores(model, rows, mask) for rows in (ids, changed(ids, SHORT, None))]
    else:
        pair = [scores(model, ids, mask, rows) for rows in (target, changed(target, SHORT, None))]
    return (pair[0] - pair[1])[:, :SHORT].abs().max().item()


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
    padded = ids.masked_fill(mask == 0, model.config.pad_token_id or 0)
    row = None if target is None else target[:1]
    together = scores(model, padded, mask, target)[:1]
    alone = scores(model, ids[:1, :SHORT], mask[:1, :SHORT], row)
    kept = slice(None) if target is not None or alone.dim() == 2 else slice(SHORT)
    return (together[:, kept] - alone).abs().max().item()


def cache_differs(model, ids, mask, target):
    """The scores of one token at a time, with the cache, must be those of the whole text."""
    rows = ids if target is None else target
    whole = scores(model, ids, mask, target)
    cache, steps = None, []
    for step in range(rows.size(1)):
        inputs = {"attention_mask": mask if target is not None else mask[:, : step + 1]}
        inputs["past_key_values"], inputs["use_cache"] = cache, True
        inputs["input_ids" if target is None else "decoder_input_ids"] = rows[:, step : step + 1]
        if target is not None:
            inputs["input_ids"] = ids
        output = model(**inputs)
        cache = output.past_key_values
        steps.append(output.logits.double())
    return (whole - torch.cat(steps, 1)).abs().max().item()


QUESTIONS = {
    "sees-the-future": sees_the_future,
    "no-source-padding-mask": no_source_padding_mask,
    "rows-mixed": rows_mixed,
    "depends-on-the-batch": depends_on_the_batch,
    "cache-differs": cache_differs,
}


@torch.no_grad()
def answer(name, finding):
    """Return the change that shows a finding in a model, None where no question is written or nothing changes."""
    if finding not in QUESTIONS:
        return None
    made = sound.library_model(name)
    if isinstance(made, dict):
        return None
    model = made[0].eval()
    with contextlib.suppress(Exception):
        model.double()
    torch.manual_seed(2)
    ids = torch.randint(3, library_models.VOCABULARY, (2, LENGTH))
    target = torch.randint(3, library_models.VOCABULARY, (2, LENGTH)) if model.config.is_encoder_decoder else None
    try:
        change = QUESTIONS[finding](model, ids, torch.ones_like(ids), target)
    except Exception as error:
        print(f"{name}: {finding}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
        return None
    return change if change > ROUNDING else None


def main():
    """Answer the questions of standard input."""
    warnings.simplefilter("ignore")
    print(json.dumps([answer(name, finding) for name, finding in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
