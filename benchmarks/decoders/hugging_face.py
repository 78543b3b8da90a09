"""Decode with `generate` of Hugging Face MarianMT, in fp32. Needs: pip install transformers."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import MarianMTModel

from decoders.measured_decoding import Rows, before, serve_torch
from manyheads.inference.translation.translator import Translator
from manyheads.interop.marian.writer import marian_numbers
from manyheads.text.tokenizer import BOS


def main(folder: Path, run: Path, variant: str) -> None:
    marian_ids = marian_numbers(Translator.load(run, device="cpu").model)  # of each id of ours
    our_ids = {marian_id: i for i, marian_id in enumerate(marian_ids) if i != BOS}
    model = MarianMTModel.from_pretrained(folder / "exports" / "huggingface").eval()
    settings = model.config
    pad, eos, start = settings.pad_token_id, settings.eos_token_id, settings.decoder_start_token_id

    def translate(rows: Rows, beam: int) -> Rows:
        max_length = max(map(len, rows))
        source = torch.tensor(
            [[*(marian_ids[i] for i in row), eos, *[pad] * (max_length - len(row))] for row in rows]
        )
        outputs = model.generate(
            source,
            attention_mask=source != pad,
            num_beams=beam,
            do_sample=False,
            length_penalty=1.0,
            max_new_tokens=2 * max_length + 20,
            forced_eos_token_id=None,
            bad_words_ids=[[i] for i in sorted({pad, start} - {eos})],
        )
        rows = [row[1:] if row[0] == start else row for row in outputs.tolist()]
        return [[our_ids[i] for i in before(eos, row)] for row in rows]

    serve_torch(translate, folder)
