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
from manyheads.errors import RunError
from manyheads.text.normalize import normalize
from manyheads.text.sampling import UnigramSampler
from manyheads.text.subwords import _WORTH_THREADS, SubwordTokenizer
from manyheads.text.tokenizer import load_tokenizer
from manyheads.text.training import train_subwords

SUBWORD_KINDS = ("bpe", "unigram")


@pytest.fixture(scope="module", params=SUBWORD_KINDS)
def sampled(request: pytest.FixtureRequest, german: list[str], korean: list[str]) -> SubwordTokenizer:
    config = TokenizerConfig(kind=request.param, vocab_size=380, sampling=0.2)
    return train_subwords(config, german + korean, "de+ko")


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
            tokenizer = train_subwords(config, german + korean, "de+ko")
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
    tokenizer = train_subwords(TokenizerConfig(kind=kind, vocab_size=340), german, "de")
    assert tokenizer.sample(german, 3) == tokenizer.encode(german)


def test_a_model_with_other_special_ids_is_refused(german: list[str]) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(german), model_writer=model, vocab_size=80, minloglevel=2
    )
    with pytest.raises(RunError, match=r"are \(0, -1, 1, 2\), not \(0, 1, 2, 3\)"):
        load_tokenizer(TokenizerConfig(), "de", model.getvalue())


def test_many_texts_encoded_together_have_the_pieces_of_each_alone(
    sampled: SubwordTokenizer, german: list[str]
) -> None:
    many = german * (_WORTH_THREADS // len(german) + 1)
    assert sampled.encode(many) == [sampled.encode([text])[0] for text in many]
