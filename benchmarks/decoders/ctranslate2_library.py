"""Decode with the CTranslate2 library. Needs: pip install ctranslate2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ctranslate2

from decoders.measured_decoding import BATCH, Decode, DecodingRequest, Rows, serve


def main(folder: Path, run: Path, variant: str) -> None:
    exported = folder / "exports" / f"ctranslate2-{variant}"
    sources, targets = (vocabulary(exported, side) for side in ("source", "target"))
    ids_of_tokens = {token: i for i, token in enumerate(targets)}
    translators: dict[str, Any] = {}

    def prepare(request: DecodingRequest) -> Decode:
        if request.setting not in translators:
            translators.clear()
            translators[request.setting] = ctranslate2.Translator(
                str(exported), device="cpu", inter_threads=request.workers, intra_threads=request.threads
            )
        return decode

    def decode(rows: Rows, request: DecodingRequest) -> Rows:
        results = translators[request.setting].translate_batch(
            [[sources[token] for token in row] for row in rows],  # the exported settings add the end mark
            beam_size=request.beam,
            length_penalty=1.0,
            max_batch_size=BATCH,
            max_decoding_length=request.tokens or 2 * max(map(len, rows)) + 20,
        )
        return [[ids_of_tokens[token] for token in result.hypotheses[0]] for result in results]

    serve(prepare, folder)


def vocabulary(exported: Path, side: str) -> list[str]:
    shared = exported / "shared_vocabulary.json"
    path = shared if shared.exists() else exported / f"{side}_vocabulary.json"
    tokens: list[str] = json.loads(path.read_text())
    return tokens
