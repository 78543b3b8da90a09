"""Generator: a text is a function of the prompt, the options and the index of the sample alone."""

from __future__ import annotations

import pytest
import torch
from tests.decoding.test_language_model import language_model
from tests.tolerances import approx

from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.inference.generation import stream_before_stop
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Sampling
from manyheads.text.characters import ByteTokenizer, CharacterTokenizer
from manyheads.text.tokenizer import UNK

SYMBOLS = "abcdefghijklmnopqrstuvwxyzäöü!?.,-':;()AB\n "
PROMPTS = ["ab", "a longer beginning than the window holds", "", "nein, ", "ab"]
LONG = GenerateOptions(max_tokens=20, samples=3)  # more than the window


def make_generator(documents: str = "file", window: int = 12, batch_tokens: int = 4_096) -> Generator:
    tokenizer = CharacterTokenizer(SYMBOLS, "en", lowercase=False, keep_space=True)
    assert tokenizer.size == 47
    config = Config.model_validate(
        {
            "task": "language-modeling",
            "data": {"language": "en", "documents": documents, "max_length": window},
            "search": {"batch_tokens": batch_tokens},
        }
    )
    return Generator(config, tokenizer, language_model(positions="rotary"))


def texts(generator: Generator, prompts: list[str], options: GenerateOptions) -> list[list[str]]:
    return [[sample.text for sample in generation.samples] for generation in generator.generate(prompts, options)]


@pytest.mark.parametrize("documents", ["file", "line"])
@pytest.mark.parametrize("greedy", [True, False])
def test_other_prompts_order_and_batches_change_nothing(documents: str, greedy: bool) -> None:
    """Check invariant D."""
    options = GenerateOptions(max_tokens=20, sampling=None) if greedy else LONG
    whole = texts(make_generator(documents), PROMPTS, options)
    assert whole[0] == whole[4]
    for batch_tokens in (1, 50):
        assert texts(make_generator(documents, batch_tokens=batch_tokens), PROMPTS, options) == whole
    assert texts(make_generator(documents), PROMPTS[::-1], options) == whole[::-1]
    for prompt, right in zip(PROMPTS, whole, strict=True):
        assert texts(make_generator(documents), [prompt], options) == [right]


def test_samples_are_numbered_and_seeded() -> None:
    generator = make_generator()
    (three,) = texts(generator, ["ab"], LONG)
    assert len(set(three)) == 3
    assert texts(generator, ["ab"], GenerateOptions(max_tokens=20, samples=2)) == [three[:2]]
    assert texts(generator, ["ab"], GenerateOptions(max_tokens=20, sampling=Sampling(seed=2))) != [three[:1]]


@pytest.mark.parametrize("stop", [(), ("e",), ("zz", "b"), ("\n",)])
@pytest.mark.parametrize("prompt", ["", "ab"])
def test_a_stream_gives_the_same_text(prompt: str, stop: tuple[str, ...]) -> None:
    generator = make_generator()
    options = GenerateOptions(max_tokens=30, samples=3, stop=stop)
    (one,) = generator.generate([prompt], options)
    for number, sample in enumerate(one.samples):
        pieces = list(generator.stream(prompt, options, sample=number))
        assert "".join(pieces) == sample.text
        assert all(pieces)


def test_a_text_ends_before_its_stop_text_with_that_reason() -> None:
    generator = make_generator()
    (free,) = generator.generate(["ab"], GenerateOptions(max_tokens=60))
    text = free.samples[0].text
    assert free.samples[0].ended in ("length", "end")
    for stop, others in ((text[20], ("never this",)), (text[20:24], ()), (text[0], ("never this",))):
        (cut,) = generator.generate(["ab"], GenerateOptions(max_tokens=60, stop=(*others, stop)))
        sample = cut.samples[0]
        assert sample.text == text[: text.index(stop)]
        assert sample.ended == "stop"
        assert len(sample.tokens) == len(sample.token_scores) == text.index(stop) + len(stop)
        assert sample.log_probability == pytest.approx(sum(sample.token_scores))


@pytest.mark.parametrize(
    ("output", "text", "warnings"),
    [(b"a \xe2\x98", "a ", ["broken-character"]), ("a ☃".encode(), "a ☃", []), (b"", "", [])],
)
def test_bytes_that_form_no_character_are_left_out_with_a_warning(
    output: bytes, text: str, warnings: list[str]
) -> None:
    generator = make_generator()
    generator.tokenizer = ByteTokenizer(lowercase=False)
    hypothesis = Hypothesis(tuple(4 + byte for byte in output), 0.0, 0.0, (), True)
    found = generator.generation(hypothesis, ())
    assert (found.text, found.warnings, found.to_json()["warnings"]) == (text, warnings, warnings)


def test_a_stop_text_in_the_prompt_is_ignored() -> None:
    generator = make_generator()
    (one,) = generator.generate(["ab"], GenerateOptions(max_tokens=9, stop=("ab",)))
    assert one.samples[0].text


@pytest.mark.parametrize("pieces", [["abcab", "cabx", "y"], list("abcabcabxy"), ["abcabcabxy"]])
def test_pieces_that_may_begin_a_stop_text_are_delayed(pieces: list[str]) -> None:
    assert "".join(stream_before_stop(pieces, ["abx"])) == "abcabc"
    assert "".join(stream_before_stop(pieces, ["xyz", "by"])) == "abcabcabxy"
    assert "".join(stream_before_stop(pieces, [])) == "abcabcabxy"
    assert list(stream_before_stop(pieces, ["a"])) == []


def test_scores_are_those_of_the_model_at_any_temperature() -> None:
    generator = make_generator(window=97)
    options = GenerateOptions(sampling=Sampling(temperature=3.0, top_k=9), max_tokens=30)
    (one,) = generator.generate(["abc"], options)
    sample = one.samples[0]
    ids = generator.tokenizer.encode(["abc" + sample.text])[0]
    with torch.no_grad():
        log_probs = generator.model(torch.tensor([ids])).log_softmax(-1)[0]
    right = [float(log_probs[position - 1, ids[position]]) for position in range(3, len(ids))]
    assert sample.token_scores[: len(right)] == approx(right)


def test_truncated_prompts_and_unknown_characters_are_reported() -> None:
    generator = make_generator()
    long, unusual = generator.generate(["x" * 13, "a가b"], GenerateOptions(max_tokens=1))
    assert (long.truncated, long.unknown) == (True, 0)
    assert (unusual.truncated, unusual.unknown) == (False, 1)
    assert generator.unseen(["x" * 13, "a가b", "ok"]) == ([1], [2])


def test_only_the_end_of_a_long_prompt_counts() -> None:
    """Use a prompt of 100,000 tokens, of which the last determine the output."""
    generator = make_generator()
    end = "the last twelve and more of these."
    outputs = [texts(generator, [f"{start}{end}"], GenerateOptions(sampling=None, max_tokens=20)) for start in
            ("a" * 99_966, "b" * 99_966)]  # fmt: skip
    assert outputs[0] == outputs[1]


def test_the_model_keeps_its_mode_and_never_generates_unk() -> None:
    generator = make_generator()
    generator.model.train()
    generator.model.output.weight.data[UNK] *= 100
    found = generator.generate(["ab"], LONG)
    assert generator.model.training
    assert "<unk>" not in "".join(sample.text for sample in found[0].samples)


def test_invalid_options_are_refused() -> None:
    with pytest.raises(UsageError, match="samples = 0"):
        GenerateOptions(samples=0)
    with pytest.raises(UsageError, match="max_tokens = 0"):
        GenerateOptions(max_tokens=0)
    with pytest.raises(UsageError, match="stop"):
        GenerateOptions(stop=("",))
    with pytest.raises(UsageError, match="list of texts"):
        make_generator().generate("ab")
