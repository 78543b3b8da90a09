"""Compare a MarianMT folder, computed by transformers, with a model of ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from manyheads.data.batch import pad_rows
from manyheads.errors import require
from manyheads.interop.parity import Parity, Reference, compare, decoder_input, no_progress_bars, token_scores
from manyheads.interop.weights import read_weights
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["check_marian"]


def check_marian(folder: Path, number: Sequence[int], right: Reference, *, trust_pickle: bool = False) -> Parity:
    """Compare on samples.

    Args:
        folder: the MarianMT model.
        number: their id of each id of ours; that of the begin mark is their first decoder token.
        right: outputs of our model.
        trust_pickle: whether to read weights that are a pickle.

    Raises:
        ParityError: the results differ.
    """
    library = require("transformers", extra="hf", purpose="the comparison with transformers")
    with no_progress_bars(library):
        theirs = library.MarianMTModel.from_pretrained(
            None,
            config=library.MarianConfig.from_pretrained(folder),
            state_dict=read_weights(folder, trust_pickle=trust_pickle),
        ).eval()
    numbers = torch.tensor(number)
    scores = their_scores(theirs.float(), numbers, right)
    return compare(right, scores, their_outputs(theirs, numbers, right), "float32", "the MarianMT model")


@torch.inference_mode()
def their_scores(theirs: Any, numbers: torch.Tensor, right: Reference) -> list[list[float]]:
    """Return the log-probabilities of the tokens of our outputs by their model."""
    source = numbers[pad_rows(right.samples.rows, PAD, last=EOS)]
    target = numbers[decoder_input(right.outputs)]
    seen = (source != numbers[PAD]).long()
    logits = theirs(input_ids=source, attention_mask=seen, decoder_input_ids=target).logits
    return token_scores(logits[..., numbers], right.outputs)


@torch.inference_mode()
def their_outputs(theirs: Any, numbers: torch.Tensor, right: Reference) -> list[list[int]]:
    """Return their greedy outputs as ids of ours."""
    source = numbers[pad_rows(right.samples.rows, PAD, last=EOS)]
    found = theirs.generate(
        input_ids=source,
        attention_mask=(source != numbers[PAD]).long(),
        num_beams=1,
        do_sample=False,
        max_length=max(right.limits) + 2,
        bad_words_ids=[[i] for i in sorted({int(numbers[PAD]), int(numbers[BOS])} - {int(numbers[EOS])})],
        forced_eos_token_id=None,
    )
    ids = {int(number): i for i, number in enumerate(numbers) if i != BOS}
    outputs = [[ids[i] for i in row] for row in found[:, 1:].tolist()]
    return [row[: row.index(EOS)] if EOS in row else row for row in outputs]
