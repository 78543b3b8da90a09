from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import ConfigError, RunError
from manyheads.text import subwords
from manyheads.text.normalize import normalize
from manyheads.text.sampling import UnigramSampler
from manyheads.text.subwords import _WORTH_THREADS, SubwordTokenizer
from manyheads.text.tokenizer import load_tokenizer

SUBWORD_KINDS = ("bpe", "unigram")


@pytest.fixture(scope="module", params=SUBWORD_KINDS)
def sampled(request: pytest.FixtureRequest, german: list[str], korean: list[str]) -> SubwordTokenizer:
    config = TokenizerConfig(kind=request.param, vocab_size=380, sampling=0.2)
    return SubwordTokenizer.train(config, german + korean, "de+ko")


def test_the_stored_model_is_a_plain_sentencepiece_model(sampled: SubwordTokenizer, german: list[str]) -> None:
    """The SentencePiece library encodes the same ids with the stored file."""
    library = sentencepiece.SentencePieceProcessor(model_proto=sampled.to_bytes())
    assert library.encode(german) == sampled.encode(german)
    assert sampled.suffix == ".model"


def test_pieces_are_named_as_in_sentencepiece(sampled: SubwordTokenizer) -> None:
    pieces = sampled.pieces(sampled.encode(["Hund 漢"])[0])
    assert pieces[0].startswith("▁")
    assert pieces[-3:] == ["<0xE6>", "<0xBC>", "<0xA2>"]


def test_sampling_depends_on_texts_and_seed_alone(sampled: SubwordTokenizer, german: list[str]) -> None:
    first = sampled.sample(german, 5)
    sampled.sample(german[3:], 6)
    assert sampled.sample(german, 5) == first


SAMPLING_PROGRAM = """
import hashlib, sys
from manyheads.config.schema import TokenizerConfig
from manyheads.text.subwords import _WORTH_THREADS, SubwordTokenizer
tokenizer = SubwordTokenizer(TokenizerConfig(kind=sys.argv[1], sampling=0.2), open(sys.argv[2], "rb").read())
print(tokenizer.sample(["Der Hund schläft im Garten."] * 20, 5))
"""


def test_another_process_samples_the_same_pieces(sampled: SubwordTokenizer, tmp_path: Path) -> None:
    """Resumed training depends on it to equal uninterrupted training."""
    path = tmp_path / "tokenizer.model"
    path.write_bytes(sampled.to_bytes())
    command = [sys.executable, "-c", SAMPLING_PROGRAM, sampled.kind, str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(sampled.sample(["Der Hund schläft im Garten."] * 20, 5))


def test_sampling_without_randomness_segments_as_the_library_does(german: list[str], korean: list[str]) -> None:
    """BPE merges in the library's order; for unigram, a large alpha leaves only the best segmentation."""
    texts = [*german, *korean, "Straße ☃☃ 漢字 x\u200dy <s> </s> <0x41> a  b", "☃"]
    for kind, sampling in (("bpe", 1e-12), ("unigram", 0.999)):
        for size in (380, 150):  # with and without bytes
            config = TokenizerConfig(kind=kind, vocab_size=size, sampling=sampling)
            tokenizer = SubwordTokenizer.train(config, german + korean, "de+ko")
            if kind == "unigram":
                tokenizer.sampler = UnigramSampler(tokenizer.scores, 1e4)
            assert tokenizer.sample(texts, 1) == tokenizer.encode(texts), (kind, size)


def test_concurrent_threads_sample_independently(sampled: SubwordTokenizer, german: list[str]) -> None:
    texts = german * 5
    expected = {seed: sampled.sample(texts, seed) for seed in range(4)}
    found: dict[int, bool] = {}

    def work(seed: int) -> None:
        found[seed] = all(sampled.sample(texts, seed) == expected[seed] for _ in range(4))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(expected, True)


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**32 - 1, 2**32, 2**64, 10**40])
def test_every_integer_is_a_seed(sampled: SubwordTokenizer, german: list[str], seed: int) -> None:
    assert sampled.sample(german, seed) == sampled.sample(german, seed)
    assert sampled.sample(german, seed) != sampled.sample(german, seed + 1)


@settings(max_examples=50)
@given(text=st.text(st.characters(exclude_categories=())), seed=st.integers())
def test_sampled_pieces_decode_to_the_same_text(sampled: SubwordTokenizer, text: str, seed: int) -> None:
    (ids,) = sampled.sample([f"Hund ▁{text}"], seed)
    assert sampled.decode(ids) == normalize(f"Hund ▁{text}")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_sampling_with_probability_0_is_encoding(kind: str, german: list[str]) -> None:
    tokenizer = SubwordTokenizer.train(TokenizerConfig(kind=kind, vocab_size=340), german, "de")
    assert tokenizer.sample(german, 3) == tokenizer.encode(german)


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_a_vocabulary_too_large_for_the_text_is_refused_with_the_largest_possible(
    kind: str, german: list[str]
) -> None:
    with pytest.raises(ConfigError, match="vocab_size = 9000 is more than the text of de allows") as caught:
        SubwordTokenizer.train(TokenizerConfig(kind=kind, vocab_size=9_000), german, "de")
    largest = int(str(caught.value).rpartition("at most ")[2].rstrip("."))
    assert SubwordTokenizer.train(TokenizerConfig(kind=kind, vocab_size=largest), german, "de").size == largest
    with pytest.raises(ConfigError, match=f"at most {largest}"):
        SubwordTokenizer.train(TokenizerConfig(kind=kind, vocab_size=largest + 1), german, "de")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
@pytest.mark.parametrize("size", [9, 261])
def test_a_vocabulary_too_small_for_the_characters_is_refused_with_the_smallest_possible(
    kind: str, size: int, german: list[str]
) -> None:
    def config(size: int) -> TokenizerConfig:
        return TokenizerConfig(kind=kind, vocab_size=size)

    with pytest.raises(ConfigError, match=f"vocab_size = {size} is too small for the text of de") as caught:
        SubwordTokenizer.train(config(size), german, "de")
    smallest = int(str(caught.value).rpartition("at least ")[2].rstrip("."))
    assert SubwordTokenizer.train(config(smallest), german, "de").size == smallest
    with pytest.raises(ConfigError, match=f"at least {smallest}"):
        SubwordTokenizer.train(config(smallest - 1), german, "de")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_a_small_vocabulary_has_no_bytes_and_unseen_characters_are_unknown(kind: str, german: list[str]) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=80)
    tokenizer = SubwordTokenizer.train(config, german, "de")
    assert tokenizer.decode(tokenizer.encode(["Hund 漢 Hund▁"])[0]) == "Hund <unk> Hund<unk>"
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(german)] == german


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_of_more_characters_than_pieces_the_rarest_get_none(kind: str, german: list[str]) -> None:
    rare = [f"Hund {chr(code)}" for code in range(0x4E00, 0x4E00 + 100)]
    tokenizer = SubwordTokenizer.train(TokenizerConfig(kind=kind, vocab_size=340), german * 400 + rare, "de")
    assert tokenizer.size == 340
    assert "ß" in tokenizer.texts
    assert not {line[-1] for line in rare} & set(tokenizer.texts)
    assert tokenizer.decode(tokenizer.encode(rare)[0]) == rare[0]


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_split_digits_makes_every_digit_a_token(kind: str, german: list[str]) -> None:
    numbered = [f"2024 {line} 1999 2024" for line in german]
    for split in (False, True):
        config = TokenizerConfig(kind=kind, vocab_size=90, split_digits=split)
        tokenizer = SubwordTokenizer.train(config, numbered, "de")
        (ids,) = tokenizer.encode(["2024"])
        digits = [piece for piece in tokenizer.pieces(ids) if piece != "▁"]
        assert (digits == list("2024")) == split
        assert tokenizer.decode(ids) == "2024"


def test_training_lines_may_contain_characters_that_the_library_reserves(german: list[str]) -> None:
    config = TokenizerConfig(vocab_size=340)
    marked = [f"▅ {text.replace(' ', '▁')}" for text in german]
    assert (
        SubwordTokenizer.train(config, marked, "de").sha256 == SubwordTokenizer.train(config, german, "de").sha256
    )


@pytest.mark.parametrize("length", [1, 999, 1000, 1001, 5000])
def test_training_lines_are_short_and_nothing_is_lost(length: int) -> None:
    for text in ("x" * length, ("Hunde und " * length)[:length].strip(), "길" * length):
        lines = list(subwords._training_lines(TokenizerConfig(), [text, "Ende"]))
        assert "".join(lines) == text + "Ende"
        assert max(len(line.encode()) for line in lines) <= 4_192
        if " " in text:
            assert all(line.startswith(" ") for line in lines[1:-1])  # cut at blanks


def test_characters_of_a_long_line_get_pieces(german: list[str]) -> None:
    long_line = "Ελληνικά " * 2_000
    tokenizer = SubwordTokenizer.train(TokenizerConfig(vocab_size=340), [*german, long_line], "de")
    assert not any(piece.startswith("<0x") for piece in tokenizer.pieces(tokenizer.encode(["Ελληνικά"])[0]))


def test_a_model_with_other_special_ids_is_refused(german: list[str]) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(german), model_writer=model, vocab_size=80, minloglevel=2
    )
    with pytest.raises(RunError, match=r"are \(0, -1, 1, 2\), not \(0, 1, 2, 3\)"):
        load_tokenizer(TokenizerConfig(), "de", model.getvalue())


def test_training_prints_nothing(german: list[str]) -> None:
    """The log level of the library is set once for a process, hence a separate process."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from manyheads.config.schema import TokenizerConfig\n"
        "from manyheads.text.subwords import SubwordTokenizer\n"
        f"print(SubwordTokenizer.train(TokenizerConfig(vocab_size=340), {german!r}, 'de').size)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("340\n", "")


def test_many_texts_encoded_together_have_the_pieces_of_each_alone(
    sampled: SubwordTokenizer, german: list[str]
) -> None:
    many = german * (_WORTH_THREADS // len(german) + 1)
    assert sampled.encode(many) == [sampled.encode([text])[0] for text in many]
