"""Decode greedily without a KV cache, as tutorials do: each step computes the whole prefix again."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from decoders.measured_decoding import Decode, DecodingRequest, Rows, by_length, serve
from manyheads.inference.translation.translator import Translator
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD


def main() -> None:
    folder, run = Path(sys.argv[1]), sys.argv[2]
    model = Translator.load(run, device="cpu").model.eval()

    @torch.inference_mode()
    def loop(rows: Rows) -> Rows:
        """Decode until every sentence has ended or reached its maximum length."""
        memory, mask = model.encode(pad_rows(rows, PAD, last=EOS))
        target = torch.full((len(rows), 1), BOS)
        ended = torch.zeros(len(rows), dtype=torch.bool)
        for _ in range(2 * max(map(len, rows)) + 20):
            next_tokens = model.output(model.decode(target, memory, mask)[:, -1]).argmax(-1)
            target = torch.cat([target, next_tokens[:, None]], 1)
            ended |= next_tokens == EOS
            if bool(ended.all()):
                break
        outputs = [row[1:] for row in target.tolist()]
        return [row[: row.index(EOS)] if EOS in row else row for row in outputs]

    def prepare(request: DecodingRequest) -> Decode:
        torch.set_num_threads(request.threads)
        return lambda rows, request: by_length(rows, loop)

    serve(prepare, folder)


if __name__ == "__main__":
    main()
