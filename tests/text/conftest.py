"""A small corpus in three scripts, and a tokenizer of every kind that needs no extra."""

from __future__ import annotations

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.text.tokenizer import Tokenizer
from manyheads.text.training import train_tokenizers

GERMAN = [
    "Ein Mann geht mit seinem Hund über die Straße.",
    "Zwei Männer gehen mit ihren Hunden durch den Wald.",
    "Eine Frau liest ein Buch über Hunde.",
    "Der Hund schläft, die Katze nicht!",
    "Im Wald steht ein altes Haus; darin wohnt eine Frau.",
    "Ein Junge spielt im Wasser mit einem roten Ball.",
    "Die Leute sitzen vor dem Haus und trinken Kaffee.",
    "Ein Radfahrer springt über einen kleinen Hügel.",
] * 3
KOREAN = [
    "남자가 개와 함께 길을 건넌다.",
    "두 남자가 개들과 숲을 걷는다.",
    "여자가 개에 관한 책을 읽는다.",
    "개는 자고 고양이는 자지 않는다!",
    "숲에 오래된 집이 있고 그 안에 여자가 산다.",
    "소년이 물에서 빨간 공을 가지고 논다.",
    "사람들이 집 앞에 앉아 커피를 마신다.",
    "자전거를 탄 사람이 작은 언덕을 뛰어넘는다.",
] * 3
KINDS = ("bpe", "unigram", "characters", "bytes")


@pytest.fixture(scope="session")
def german() -> list[str]:
    return GERMAN


@pytest.fixture(scope="session")
def korean() -> list[str]:
    return KOREAN


@pytest.fixture(scope="session", params=KINDS)
def config(request: pytest.FixtureRequest) -> TokenizerConfig:
    return TokenizerConfig(kind=request.param, vocab_size=380)


@pytest.fixture(scope="session")
def tokenizer(config: TokenizerConfig) -> Tokenizer:
    """Return a tokenizer with a joint vocabulary of German and Korean."""
    return train_tokenizers(config, GERMAN, KOREAN, "de", "ko").source
