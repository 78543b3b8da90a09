"""Decode with `generate` of Hugging Face MarianMT, in fp32. Needs: pip install transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import MarianMTModel

from decoders.measured_decoding import Decode, DecodingRequest, Rows, by_length, serve
from manyheads.inference.translation.translator import Translator
from manyheads.interop.marian.writer import marian_numbers
from manyheads.text.tokenizer import BOS


def main() -> None:
    folder, run = Path(sys.argv[1]), sys.argv[2]
    marian_ids = marian_numbers(Translator.load(run, device="cpu").model)  # of each id of ours
    our_ids = {marian_id: i for i, marian_id in enumerate(marian_ids) if i != BOS}
    model = MarianMTModel.from_pretrained(folder / "exports" / "huggingface").eval()
    settings = model.config
    pad, eos, start = settings.pad_token_id, settings.eos_token_id, settings.decoder_start_token_id

    def prepare(request: DecodingRequest) -> Decode:
        torch.set_num_threads(request.threads)

        @torch.inference_mode()
        def generate(rows: Rows) -> Rows:
            max_length = max(map(len, rows))
            source = torch.tensor(
                [[*(marian_ids[i] for i in row), eos, *[pad] * (max_length - len(row))] for row in rows]
            )
            outputs = model.generate(
                source,
                attention_mask=source != pad,
                num_beams=request.beam,
                do_sample=False,
                length_penalty=1.0,
                max_new_tokens=2 * max_length + 20,
                forced_eos_token_id=None,
                bad_words_ids=[[i] for i in sorted({pad, start} - {eos})],
            )
            return [without_marks(row) for row in outputs.tolist()]

        return lambda rows, request: by_length(rows, generate)

    def without_marks(row: list[int]) -> list[int]:
        tokens = row[1:] if row[0] == start else row
        return [our_ids[i] for i in (tokens[: tokens.index(eos)] if eos in tokens else tokens)]

    serve(prepare, folder)


if __name__ == "__main__":
    main()
