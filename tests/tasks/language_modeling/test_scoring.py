"""A language model from a plain text file to its generated text and its evaluation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.runs.language import PLAY, make_language_config, write_play
from tests.runs.parts import Interrupting
from tests.runs.test_train import assert_same_run
from tests.tolerances import approx
from tests.training.parts import CollectingListener
from torch.nn import functional

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.store import TokenStream
from manyheads.decoding.language_model import held_tokens
from manyheads.errors import ConfigError, DataError
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train
from manyheads.text.tokenizer import EOS
from manyheads.training.batch_sources import BlockUpdates
from manyheads.training.distributed import World

# With dropout and accumulation, whose state an interruption must not change.
WITH_RANDOMNESS: dict[str, dict[str, Any]] = {
    "model": {"dropout": 0.3},
    "training": {"accumulation": 2, "patience": 50},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_play(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def finished(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run, which tests only read."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(make_language_config(root, **WITH_RANDOMNESS), out)
    return out


@pytest.fixture(scope="module")
def memorized(root: Path, tmp_path_factory: pytest.TempPathFactory, training_seed: int) -> Path:
    """Return a run that memorized the play."""
    out = tmp_path_factory.mktemp("runs") / "learnt"
    training = {
        "steps": 300, "batch_tokens": 288, "save_every": 300, "learning_rate": 0.005, "optimizer": "muon",
        "schedule": "cosine", "warmup_steps": 20, "seed": training_seed,
    }  # fmt: skip
    sizes = {"d_model": 32, "d_ff": 64, "num_decoder_layers": 2, "positions": "rotary"}
    config = make_language_config(root, data={"max_length": 96}, model=sizes, training=training)
    train(config, out)
    return out


def stream(run: Path) -> TokenStream:
    return TokenStream(run / "cache" / "train")


def test_the_stream_is_the_text_without_its_validation_share(finished: Path) -> None:
    """Line ends, blank lines, tabs and repeated lines of the file are kept."""
    generator = Generator.load(finished)
    tokens = stream(finished).tokens.tolist()
    kept = len(PLAY) - round(0.2 * len(PLAY))
    assert generator.tokenizer.decode(tokens) == PLAY[:kept]
    assert tokens[-1] == EOS
    assert EOS not in tokens[:-1]


def test_an_interrupted_run_ends_like_an_uninterrupted_run(root: Path, finished: Path, tmp_path: Path) -> None:
    """Invariant J, bit for bit."""
    config = make_language_config(root, **WITH_RANDOMNESS)
    for moment in ({"step": 6}, {"validation": 8}):
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "run", listener=Interrupting(**moment))
        torch.manual_seed(123)
    train(config, tmp_path / "run")
    assert_same_run(tmp_path / "run", finished)


def test_several_processes_share_the_blocks_of_an_update(root: Path, finished: Path) -> None:
    config = RunDirectory(finished).config()
    alone = BlockUpdates(config, stream(finished))
    worlds = [BlockUpdates(config, stream(finished), World(rank, 3)) for rank in range(3)]
    for position, starts in enumerate(alone.epoch(1)):
        all_ids = torch.cat([part.ids for part in alone.batches(1, position, starts)])
        shares = [world.batches(1, position, world.epoch(1)[position]) for world in worlds]
        assert len({len(share) for share in shares}) == 1  # processes synchronize in every micro-batch
        rows = [row for share in shares for part in share if part.target_tokens for row in part.ids.tolist()]
        assert sorted(rows) == sorted(all_ids.tolist())


def naive(run: Path, tokens: list[int], width: int) -> list[float]:
    """Return the nats of each token but the first, by one forward pass each and torch's own function."""
    model = Generator.load(run).model
    found = []
    with torch.no_grad():
        for position in range(1, len(tokens)):
            context = tokens[position - held_tokens(position, width) : position]
            logits = model(torch.tensor([context]))[:, -1]
            found.append(float(functional.cross_entropy(logits, torch.tensor([tokens[position]]))))
    return found


def test_evaluation_is_the_sum_over_single_tokens(finished: Path) -> None:
    found = evaluate(finished, split="valid")
    text = PLAY[len(PLAY) - round(0.2 * len(PLAY)) :]
    ids = Generator.load(finished).tokenizer.encode(["\n" + text])[0]
    nats = naive(finished, ids, 16)
    assert (found.tokens, found.bytes) == (len(text), len(text.encode()))
    assert found.loss == approx(sum(nats) / len(nats))
    assert found.perplexity == pytest.approx(math.exp(found.loss))
    assert found.bits_per_byte == approx(sum(nats) / math.log(2) / len(text.encode()))
    assert json.loads(json.dumps(found.to_json())).keys() >= {
        "task", "loss", "perplexity", "bits_per_byte", "tokens", "bytes", "window", "stride", "seconds",
    }  # fmt: skip


def test_a_file_is_scored_with_all_its_bytes(finished: Path, tmp_path: Path) -> None:
    """Bytes of the file are counted, also those of multi-byte characters and of a last line without a newline."""
    path = tmp_path / "new.txt"
    path.write_bytes("ANNA:\r\n\n  zwölf Uhr\tschon".encode())
    found = evaluate(finished, source=path)
    assert (found.bytes, found.tokens) == (26, 25)


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe", "unigram"])
def test_bits_a_byte_compare_models_with_different_tokenizers(root: Path, tmp_path: Path, kind: str) -> None:
    """For any tokenizer, 2 ** (bits a byte x bytes) is one over the probability of the same text."""
    tokenizer = {"kind": kind} | ({"vocab_size": 300} if kind in ("bpe", "unigram") else {})
    config = make_language_config(root, tokenizer=tokenizer, training={"steps": 2, "save_every": 2})
    train(config, tmp_path / "run")
    found = evaluate(tmp_path / "run", split="valid")
    assert found.bytes == round(0.2 * len(PLAY))
    assert found.bits_per_byte * found.bytes * math.log(2) == pytest.approx(found.loss * found.tokens)
    (one,) = Generator.load(tmp_path / "run").generate(["ANNA:\n  "], GenerateOptions(max_tokens=5))
    assert one.unknown == 0


def test_a_model_that_memorized_a_play_writes_it(memorized: Path) -> None:
    """Invariant F: memorized text is reproduced with its line ends and blanks, far beyond a block."""
    generator = Generator.load(memorized)
    start = "CLEO:\nWho goes there?\n"
    (one,) = generator.generate([start], GenerateOptions(sampling=None, max_tokens=200))
    assert start + one.samples[0].text == PLAY[PLAY.index(start) :][: len(start) + 200]


def test_each_line_may_be_a_separate_document(tmp_path: Path) -> None:
    lines = ["one two", "", "two  three ", "one two", "   ", "four"]
    (tmp_path / "play.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "held.txt").write_text("four\nfive\n", encoding="utf-8")
    data = {"documents": "line", "valid": "held", "max_length": 4}
    config = make_language_config(tmp_path, data=data, training={"steps": 2, "save_every": 2})
    listener = CollectingListener()
    train(config, tmp_path / "run", listener=listener)
    tokens = stream(tmp_path / "run").tokens.tolist()
    ends = [position for position, token in enumerate(tokens) if token == EOS]
    tokenizer = Generator.load(tmp_path / "run").tokenizer
    texts = [tokenizer.decode(part.tolist()) for part in np.split(np.array(tokens), np.array(ends) + 1)]
    assert texts == ["one two", "two  three ", ""]  # no empty, none twice, none that is held out
    found = evaluate(tmp_path / "run", split="valid")
    assert (found.tokens, found.bytes) == (10, 10)  # with an end mark a line, which is its line end
    assert any("6 lines read, 2 kept" in message for message in listener.messages)


def test_additional_files_are_separate_documents(root: Path, tmp_path: Path) -> None:
    write_play(tmp_path, "first\nfile\n")
    (tmp_path / "other.txt").write_text("second\n", encoding="utf-8")
    (tmp_path / "held.txt").write_text("third\n", encoding="utf-8")
    data = {"more": ["other.txt"], "valid": "held.txt", "max_length": 4}
    train(make_language_config(tmp_path, data=data, training={"steps": 1}), tmp_path / "run")
    pieces = Generator.load(tmp_path / "run").tokenizer.pieces(stream(tmp_path / "run").tokens.tolist())
    assert "".join(pieces) == "first\nfile\n</s>second\n</s>"


def test_a_text_shorter_than_a_block_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fewer than one block of data\.max_length = 4000"):
        train(make_language_config(root, data={"max_length": 4_000}), tmp_path / "run")


def test_settings_that_do_not_fit_a_language_model_are_refused(root: Path) -> None:
    def refused(**sections: dict[str, Any]) -> str:
        with pytest.raises(ValueError, match=r"model|tokenizer") as caught:
            make_language_config(root, **sections)
        return str(caught.value)

    assert "max_positions" in refused(model={"positions": "learned", "max_positions": 15})
    assert "tokenizer.kind" in refused(tokenizer={"kind": "words"})
    assert "tokenizer.sampling" in refused(tokenizer={"kind": "bpe", "sampling": 0.1})
    assert "read" in refused(data={"weights": [1.0]})


def test_white_space_is_kept_by_language_models_only(root: Path) -> None:
    assert make_language_config(root).keep_space
    assert not Config.model_validate({"data": {"source": "de", "target": "en"}}).keep_space


def test_overrides_of_a_finished_run_are_checked_too(finished: Path) -> None:
    with pytest.raises(ConfigError, match="max_positions"):
        evaluate(finished, split="valid", overrides=["model.positions=learned", "model.max_positions=15"])
