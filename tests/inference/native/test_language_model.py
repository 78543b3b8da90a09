"""A language model in C writes what the model in torch writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.decoding.test_language_model import language_model
from tests.inference.test_generator import PROMPTS, SYMBOLS, make_generator
from tests.tolerances import approx

from manyheads.checkpoint import RunDirectory
from manyheads.inference.generation import GenerateOptions
from manyheads.inference.generator import Generator
from manyheads.inference.native.build import library
from manyheads.inference.next_token import next_tokens
from manyheads.search.options import Sampling
from manyheads.text.tokenizer import TokenizerPair

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")


def save_generator(path: Path, **model: object) -> Path:
    """Write a language model as a run, and return its directory."""
    generator, network = make_generator(), language_model(**model).float()
    settings = {"kind": "characters", "lowercase": False, "vocab_size": len(SYMBOLS) + 4}
    tokenizer = generator.config.tokenizer.model_copy(update=settings)
    config = generator.config.model_copy(update={"model": network.config, "tokenizer": tokenizer})
    run = RunDirectory(path)
    run.begin(config, TokenizerPair(generator.tokenizer, generator.tokenizer, joint=True), {})
    run.publish(dict(network.named_parameters()))
    return path


@pytest.mark.parametrize(
    "model",
    [
        {"positions": "rotary"},
        {"positions": "learned", "tied_embeddings": "none"},
        {"positions": "sinusoidal", "norm": "post"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "options",
    [
        GenerateOptions(max_tokens=30, sampling=None),
        GenerateOptions(max_tokens=30, samples=3),
        GenerateOptions(max_tokens=30, samples=2, sampling=Sampling(top_k=5, top_p=0.9), stop=("e",)),
    ],
    ids=["greedy", "samples", "nucleus"],
)
def test_a_run_writes_in_c_as_with_torch_beyond_its_window(tmp_path: Path, model, options) -> None:
    generator = Generator.load(save_generator(tmp_path / "run", **model), device="cpu")
    found, following = generator.generate(PROMPTS, options), next_tokens(generator, PROMPTS[1], Sampling())
    (alone,) = generator.generate(PROMPTS[1:2], options)
    assert alone == found[1]
    assert generator.native is not None
    assert generator.model is not None  # loads it with torch, which then writes
    assert generator.native is None
    for own, other in zip(found, generator.generate(PROMPTS, options), strict=True):
        assert replace(own, samples=[]) == replace(other, samples=[])
        for sample, right in zip(own.samples, other.samples, strict=True):
            assert (sample.text, sample.ended) == (right.text, right.ended)
            assert sample.token_scores == approx(right.token_scores)
    right = next_tokens(generator, PROMPTS[1], Sampling())
    assert [token.id for token in following.tokens] == [token.id for token in right.tokens]
