"""The text of a run is stored, and read again only if the configuration would read another text."""

from __future__ import annotations

from pathlib import Path

from tests.runs.parts import make_config, write_corpus

from manyheads.runs.corpus import text_key


def test_stored_text_is_used_by_tokenizers_that_treat_white_space_alike(tmp_path: Path) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"))
    keys = {}
    for kind in ("bpe", "unigram", "words", "huggingface"):
        tokenizer = config.tokenizer.model_copy(update={"kind": kind})
        keys[kind] = text_key(config.model_copy(update={"tokenizer": tokenizer}), [])
    assert keys["bpe"] == keys["unigram"] != keys["words"] == keys["huggingface"]
