"""Decode with manyheads in a precision."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch is imported

from decoders.measured_decoding import Decode, DecodingRequest, Rows, serve
from manyheads.allocator import keep_decoding_small
from manyheads.inference.threads import limit_threads
from manyheads.inference.translation.translator import Translator
from manyheads.search.options import SearchOptions


def main(folder: Path, run: Path, variant: str) -> None:
    keep_decoding_small()  # as `manyheads translate`
    translator = Translator.load(run, device="cpu", precision=variant)
    search = translator.config.search

    def prepare(request: DecodingRequest) -> Decode:
        limit_threads(request.threads)  # the engine chooses itself how many batches it searches in parallel

        def decode(rows: Rows, request: DecodingRequest) -> Rows:
            options = SearchOptions(
                beam_size=request.beam,
                length_penalty=1.0,
                max_length_ratio=1e-9 if request.tokens else 2.0,
                max_length_offset=request.tokens or 20,
                batch_tokens=search.batch_tokens,
                token_scores=False,  # the other contenders compute none either
            )
            return [list(hypotheses[0].tokens) for hypotheses in translator.engine.search(rows, options)]

        return decode

    serve(prepare, folder)
