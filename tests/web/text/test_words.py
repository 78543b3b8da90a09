from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.inference.translation.test_assembly import PLAIN, translation_of
from tests.interop.parts import sentences
from tests.tolerances import approx
from tests.web.text.browser import (
    LITERALS,
    Browser,
    first_difference,
    quick_texts,
    random_ids,
)
from tests.web.text.test_parts import as_json

from manyheads.config.schema import TokenizerConfig
from manyheads.inference.translation.assembly import _copied_links, pharaoh, word_alignment, word_numbers
from manyheads.inference.translation.confidence import ConfidenceModel, measure
from manyheads.inference.translation.output_checks import BrokenCharacters, LineChecks
from manyheads.inference.translation.parts import Line, Splitter
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.unlike_training import SourceModel, UnlikeTraining, fit_source_model
from manyheads.search.interface import Hypothesis
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.text.training import train_tokenizer
from manyheads.web.tokenizer import describe_tokenizer

LONGEST = 9


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=320), sentences(200), "de")


@pytest.fixture(scope="module")
def browser(browser: Browser, tokenizer: Tokenizer) -> Browser:
    browser.call("load", "bpe", describe_tokenizer(tokenizer))
    return browser


def test_word_numbers_of_tokens_are_those_of_python(browser: Browser, tokenizer: Tokenizer) -> None:
    rows = [ids[:60] for ids in tokenizer.encode(quick_texts())] + random_ids(tokenizer.size, 100, seed=1)
    found = browser.call("wordNumbers", "bpe", rows)
    assert first_difference(rows, [word_numbers(tokenizer, row) for row in rows], found) == ""


def test_word_alignments_are_those_of_python_also_with_tied_weights(browser: Browser) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        source, target = (np.sort(rng.integers(0, 5, rng.integers(0, 8))).tolist() for _ in range(2))
        attention = np.round(rng.random((len(target) + 1, len(source) + 1)), 1).tolist()
        python_result = pharaoh(word_alignment(attention, source, target))
        assert browser.call("wordAlignment", attention, source, target) == python_result
    for difference in (9e-7, 2e-6):
        near = [[0.5, 0.5 + difference, 0.0]]
        assert browser.call("wordAlignment", near, [0, 1], [0]) == pharaoh(word_alignment(near, [0, 1], [0]))


def test_links_of_copied_words_are_those_of_python(browser: Browser) -> None:
    texts = quick_texts()
    triples = [[texts[i], texts[i - 1], texts[i - 2]] for i in range(len(texts))]
    python_result = [[list(link) for link in _copied_links(*triple)] for triple in triples]
    assert first_difference(triples, python_result, browser.call("copiedLinks", triples)) == ""


def random_output(tokenizer: Tokenizer, sources: int, rng: random.Random) -> Hypothesis:
    """Return random tokens, sometimes repeated, with attention on the source and its end mark.

    Bytes of characters other than ASCII are left out: random ones form characters that no version of Unicode has.
    """
    allowed = [
        i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.size))) if not "<0x80>" <= piece <= "<0xFF>"
    ]
    tokens = rng.choices(allowed, k=rng.randint(0, 12)) * rng.choice([1, 1, 5])
    attention = [[rng.random() for _ in range(sources + 1)] for _ in range(len(tokens) + 1)]
    scores = (0.0,) * (len(tokens) + 1)
    return Hypothesis(tuple(tokens), 0.0, 0.0, scores, True, attention=tuple(map(tuple, attention)))


def python_translation(
    tokenizer: Tokenizer, line: Line, outputs: list[Hypothesis], sources: SourceModel | None = None
) -> Translation:
    """Return the translation of a line in Python."""
    stages = (UnlikeTraining, LineChecks, BrokenCharacters)
    tokenizers = TokenizerPair(tokenizer, tokenizer, joint=True)
    options = replace(PLAIN, alignment=all(output.attention for output in outputs))
    return translation_of(tokenizers, line, outputs, stages, options, sources=sources, longest=LONGEST)


@pytest.mark.parametrize("length", [3, 7, 8, 13, 14, 50])
def test_a_repetitive_source_may_have_a_repetitive_translation(
    browser: Browser, tokenizer: Tokenizer, length: int
) -> None:
    for source in ([4] * 12, [4, 5] * 6, list(range(4, 16))):
        line = Line("x", [(0, 1)], [source])
        output = Hypothesis((7,) * length, 0.0, 0.0, (), True)
        python_result = python_translation(tokenizer, line, [output]).warnings
        assert browser.call("warnings", "bpe", as_json(line), [{"tokens": output.tokens}], None) == python_result


def test_alignment_and_warnings_of_lines_are_those_of_python(browser: Browser, tokenizer: Tokenizer) -> None:
    rng = random.Random(1)
    settings: dict[str, Any] = {"language": "de", "split": "auto"}
    tokenizer = tokenizer.for_side("source")
    browser.call("load", "source", describe_tokenizer(tokenizer))
    usual = tokenizer.encode(sentences(400))
    sources = fit_source_model(usual, usual, tokenizer.size)
    literals: dict[str, Any] = {"copy_literals": True, "lower_capitals": True}
    splitter = Splitter(tokenizer, **settings, trained_length=10, longest=LONGEST, **literals)
    options = {**settings, "tokenizer": "source", "trainedLength": 10, "longest": LONGEST}
    options |= {"literals": LITERALS, "lowerCapitals": True}
    names = {"source": "source", "target": "bpe"}
    seen: set[str] = set()
    texts = [text[:80] for text in quick_texts()[::6]]
    texts += [f"\u00ad {text} \u200b \u2060 Ｗｉｅ" for text in texts[::8]]  # words without a token
    for line in splitter.lines([*texts, *(text.upper() for text in texts[::8])]):
        hypotheses = [random_output(tokenizer, min(len(ids), LONGEST), rng) for ids in line.parts]
        outputs = [{"tokens": list(output.tokens), "attention": output.attention} for output in hypotheses]
        found = browser.call("lineAlignment", options, line.text, outputs, names, LONGEST)
        expected = python_translation(tokenizer, line, hypotheses, sources)
        assert found == (expected.alignment or ""), line.text
        warnings = browser.call("warnings", "bpe", as_json(line), outputs, sources.to_json())
        assert warnings == expected.warnings, line.text
        seen.update(warnings)
    assert seen >= {
        "unlike-training",
        "sentence-cut",
        "repetition",
        "length-ratio",
    }


def test_the_confidence_in_a_translation_is_that_of_python(browser: Browser, tokenizer: Tokenizer) -> None:
    rng = random.Random(1)
    usual = tokenizer.encode(sentences(400))
    sources = fit_source_model(usual, usual, tokenizer.size)
    model = ConfidenceModel(bias=0.9, weights=(0.1, 0.2, -0.1, -0.1), usual_ratio=0.1, limits=(0.3, 0.5))
    for known in (sources, None):
        outputs: list[tuple[list[float], list[list[int]], list[str], bool]] = [
            (
                [-rng.expovariate(1) for _ in range(rng.randint(1, 30))],
                rng.sample(usual, rng.randint(1, 3)),
                rng.choice([[], [], ["sentence-cut"], ["repetition"]]),
                rng.random() < 0.1,
            )
            for _ in range(100)
        ]
        found = browser.call("confidence", model.to_json(), known and known.to_json(), outputs)
        for (scores, rows, warnings, truncated), (confidence, level) in zip(outputs, found, strict=True):
            expected = model.estimate(measure(scores, rows, known), warnings, truncated=truncated)
            assert confidence == approx(expected)
            assert level == model.level(confidence)
        assert {level for _, level in found} == {"low", "medium", "high"}


def test_bytes_that_form_no_character_are_left_out_or_completed_as_by_python(browser: Browser) -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    browser.call("load", "bytes", describe_tokenizer(tokenizer))
    rng = random.Random(1)
    data = [
        bytes(
            rng.choice(b"a\x80\x9f\xa0\xbf\xc3\xe0\xe2\xed\xf0\xf4\xff\x98\x83") for _ in range(rng.randint(0, 9))
        )
        for _ in range(1000)
    ]
    rows = [[4 + byte for byte in row] for row in data]
    for source in ("", "ein ☃ für Ä"):
        expected = [list(tokenizer.whole_characters(row, source)) for row in rows]
        assert first_difference(rows, expected, browser.call("whole", "bytes", rows, source)) == ""
    assert browser.call("decode", "bytes", rows) == [row.decode(errors="ignore") for row in data]
