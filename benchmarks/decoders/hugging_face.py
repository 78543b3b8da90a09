"""Hugging Face MarianMT, `generate`, fp32. Needs: pip install transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import MarianMTModel

from decoders.measured_decoding import Decode, DecodingRequest, Rows, by_length, serve
from manyheads.interop.marian.writer import marian_numbers
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS


def main() -> None:
    folder, run = Path(sys.argv[1]), sys.argv[2]
    numbers = marian_numbers(Translator.load(run, device="cpu").model)  # of each id of ours
    ids = {number: i for i, number in enumerate(numbers) if i != BOS}
    model = MarianMTModel.from_pretrained(folder / "exports" / "huggingface").eval()
    settings = model.config
    pad, eos, start = settings.pad_token_id, settings.eos_token_id, settings.decoder_start_token_id

    def prepare(request: DecodingRequest) -> Decode:
        torch.set_num_threads(request.threads)

        @torch.inference_mode()
        def generate(rows: Rows) -> Rows:
            longest = max(map(len, rows))
            source = torch.tensor(
                [[*(numbers[i] for i in row), eos, *[pad] * (longest - len(row))] for row in rows]
            )
            found = model.generate(
                source,
                attention_mask=source != pad,
                num_beams=request.beam,
                do_sample=False,
                length_penalty=1.0,
                max_new_tokens=2 * longest + 20,
                forced_eos_token_id=None,
                bad_words_ids=[[i] for i in sorted({pad, start} - {eos})],
            )
            return [without_marks(row) for row in found.tolist()]

        return lambda rows, request: by_length(rows, generate)

    def without_marks(row: list[int]) -> list[int]:
        written = row[1:] if row[0] == start else row
        return [ids[i] for i in (written[: written.index(eos)] if eos in written else written)]

    serve(prepare, folder)


if __name__ == "__main__":
    main()
