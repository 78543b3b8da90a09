"""Stages of a translation in a page: everything else runs without any one of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.model.samples import make_config, scramble
from tests.web.engine.node import pack
from tests.web.text.browser import LITERALS, node

from manyheads.config.schema import TokenizerConfig
from manyheads.inference.translation.unlike_training import SourceModel
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.reserved import PLACEHOLDERS, language_symbol
from manyheads.text.tokenizer import PAD
from manyheads.text.training import train_tokenizer
from manyheads.web.scripts import ENGINE, WEB
from manyheads.web.tokenizer import describe_tokenizer

LINES = ["Der Hund bellt.", "Ein {a} Hund", "Hund " * 30, ""]
SYMBOL = language_symbol("en")
SCRIPT = """
const load = (file) => import(`${process.argv[2]}/${file}`);
const { readFile } = await import("node:fs/promises");
const { STAGES } = await load("tasks/translation.js");
const { loadPageModel } = await load("tasks/requests.js");
const [wasm, header, block] = await Promise.all(process.argv.slice(3, 6).map((path) => readFile(path)));
const names = STAGES.map(({ name }) => name);
const place = names.indexOf(process.argv[6]);
if (place >= 0) STAGES.splice(place, 1);
const translator = await loadPageModel(wasm, JSON.parse(header), (write) => write(0, block));
const found = [];
for (const line of JSON.parse(process.argv[7])) found.push(await translator.translate(line, { alignment: true }));
console.log(JSON.stringify({ names, found }));
"""
# Effect of each stage on the translations of the lines.
EFFECTS: dict[str, Callable[[list[dict[str, Any]], list[dict[str, Any]]], bool]] = {
    "Direction": lambda found, usual: found[0]["score"] == usual[0]["score"],
    "UnlikeTraining": lambda found, usual: "unlike-training" in found[0]["warnings"],
    "Placeholders": lambda found, usual: "{a}" in found[1]["translation"] and found[1]["sentences"] == 2,
    "OutputChecks": lambda found, usual: "sentence-cut" in found[2]["warnings"],
    "Confidence": lambda found, usual: found[0].get("confidence_level") in ("low", "medium"),
}


@pytest.fixture(scope="module")
def translations(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Return a function that translates the lines without a stage, with a model whose weights are random."""
    reserved = (*PLACEHOLDERS, SYMBOL)
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300, reserved=reserved), LINES * 9, "de")
    torch.manual_seed(1)
    model = EncoderDecoder(make_config(tied_embeddings="none"), tokenizer.size, tokenizer.size, pad=PAD).eval()
    scramble(model)
    packed = pack(model)
    page = {
        "source": "de", "target": "en", "prefix": [tokenizer.reserved_id(SYMBOL)], "literals": LITERALS,
        "max_length": 20, "lower_capitals": True,
        "sources": SourceModel([1] * tokenizer.size, [4, 5, 1], 0.0, [-1.0, -1.0]).to_json(),
        "confidence": {"bias": 0.9, "weights": [0.0] * 4, "usual_ratio": 0.0, "limits": [0.3, 0.95]},
    }  # fmt: skip
    header = packed.header | {"tokenizers": {"source": describe_tokenizer(tokenizer), "target": None}, "page": page}
    folder = tmp_path_factory.mktemp("page")
    (folder / "header").write_text(json.dumps(header), encoding="utf-8")
    (folder / "block").write_bytes(packed.block())
    (folder / "script.mjs").write_text(SCRIPT, encoding="utf-8")

    def translate(removed: str) -> dict[str, Any]:
        paths: list[str | Path] = [WEB.as_uri(), ENGINE, folder / "header", folder / "block"]
        command = [node(), "--no-warnings", folder / "script.mjs", *paths, removed, json.dumps(LINES)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=120)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return translate


def test_without_one_stage_everything_else_still_runs(translations: Callable[[str], dict[str, Any]]) -> None:
    usual = translations("")
    assert usual["names"] == [*EFFECTS]
    for removed in ("", *EFFECTS):
        found = translations(removed)["found"]
        lost = [stage for stage, effect in EFFECTS.items() if not effect(found, usual["found"])]
        assert lost == ([removed] if removed else [])
        assert all(line["hypotheses"][0]["tokens"][0] != SYMBOL for line in found[:3])
        assert found[3] | {"confidence": None, "confidence_level": None} == usual["found"][3]
