"""Decode greedily without a KV cache, as tutorials do: each step computes the whole prefix again."""

from __future__ import annotations

from pathlib import Path

import torch

from decoders.measured_decoding import Rows, before, serve_torch
from manyheads.inference.translation.translator import Translator
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD


def main(folder: Path, run: Path, variant: str) -> None:
    model = Translator.load(run, device="cpu").model.eval()

    def translate(rows: Rows, beam: int) -> Rows:
        """Decode greedily until every sentence has ended or reached its maximum length."""
        memory, mask = model.encode(pad_rows(rows, PAD, last=EOS))
        target = torch.full((len(rows), 1), BOS)
        ended = torch.zeros(len(rows), dtype=torch.bool)
        for _ in range(2 * max(map(len, rows)) + 20):
            next_tokens = model.output(model.decode(target, memory, mask)[:, -1]).argmax(-1)
            target = torch.cat([target, next_tokens[:, None]], 1)
            ended |= next_tokens == EOS
            if bool(ended.all()):
                break
        return [before(EOS, row[1:]) for row in target.tolist()]

    serve_torch(translate, folder)
