"""The Korean of the corpus is correct, by rules that are independent of the grammar."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

import pytest
from tools.corpora.choice import Sentence
from tools.corpora.korean import hangul
from tools.corpora.korean import words as korean
from tools.corpora.korean.grammar import korean_grammar
from tools.corpora.korean.verbs import conjugate, negate
from tools.corpora.splits import sentences

COUNTERS = "권|마리|장|대|명|잔|개|벌|통|부|그릇|켤레|송이|줄"
CLOSED, OPEN = ("은", "이", "을", "과"), ("는", "가", "를", "와")


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def closed(word: str) -> bool:
    """Return whether a word ends in a consonant, by its Unicode decomposition."""
    return len(unicodedata.normalize("NFD", word[-1])) == 3


@cache
def korean_train() -> tuple[Sentence, ...]:
    return sentences("ko-en", "train")


def test_particles_follow_the_final_consonant_of_the_noun() -> None:
    nouns = {
        *korean.load_lexicon().nouns,
        "씨",
        "저",
        "우리",
        "회의",
        "수업",
        "시험",
        "경기",
        "공연",
        "기차",
        "비행기",
    }
    checked: Counter[str] = Counter()
    for sentence in korean_train():
        for word in words(sentence.foreign):
            noun, particle = word[:-1], word[-1]
            if noun in nouns and particle in CLOSED + OPEN and word not in nouns:
                assert particle in (CLOSED if closed(noun) else OPEN), sentence.foreign
                checked[particle] += 1
    assert all(checked[particle] > 50 for particle in ("은", "는", "이", "가", "을", "를", "와"))


def test_vehicles_take_ro_after_vowels_and_after_rieul() -> None:
    text = " ".join(sentence.foreign for sentence in korean_train())
    assert "버스로 " in text
    assert "지하철로 " in text
    assert "지하철으로" not in text


def test_the_copula_follows_the_final_consonant() -> None:
    checked = 0
    for sentence in korean_train():
        for stem, ending in re.findall(r"([가-힣])(이에요|예요|이었어요|였어요)[.]", sentence.foreign):
            if stem != "거":  # -ㄹ 거예요 is spelt so too
                assert closed(stem) == ending.startswith("이"), sentence.foreign
                checked += 1
    assert checked > 500


def test_every_korean_sentence_ends_in_the_polite_style() -> None:
    assert all(sentence.foreign[:-1].endswith("요") for sentence in korean_train())


def test_respected_persons_get_the_honorific() -> None:
    checked = 0
    for sentence in korean_train():
        if re.match(r"우리 (?:어머니|아버지|할머니|할아버지|선생님|교수님|사장님)[은는] ", sentence.foreign):
            end = re.search(
                r"(세요|셨어요|실 거예요|실 수 있어요|실 수 없으세요|셔야 해요|이에요|예요)[.?]$", sentence.foreign
            )
            if not end:
                assert re.search(r"(있|없|있었|보다 더 \w+|않으)\w*[.?]$", sentence.foreign), sentence.foreign
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("eat", "먹어요 먹었어요 먹을 드세요 먹은 먹는 먹으면"),
        ("make", "만들어요 만들었어요 만들 만드세요 만든 만드는 만들면"),
        ("listen to", "들어요 들었어요 들을 들으세요 들은 듣는 들으면"),
        ("help", "도와요 도왔어요 도울 도우세요 도운 돕는 도우면"),
        ("sing", "불러요 불렀어요 부를 부르세요 부른 부르는 부르면"),
        ("turn off", "꺼요 껐어요 끌 끄세요 끈 끄는 끄면"),
        ("wash", "씻어요 씻었어요 씻을 씻으세요 씻은 씻는 씻으면"),
        ("live", "살아요 살았어요 살 사세요 산 사는 살면"),
        ("sleep", "자요 잤어요 잘 주무세요 잔 자는 자면"),
        ("study", "공부해요 공부했어요 공부할 공부하세요 공부한 공부하는 공부하면"),
        ("come", "와요 왔어요 올 오세요 온 오는 오면"),
        ("dance", "춤춰요 춤췄어요 춤출 춤추세요 춤춘 춤추는 춤추면"),
    ],
)
def test_regular_and_irregular_korean_verbs_are_conjugated(name: str, forms: str) -> None:
    verb = korean.load_lexicon().verbs[name]
    made = [conjugate(verb, "present", False, False), conjugate(verb, "past", False, False), verb.future_stem()]
    made += [conjugate(verb, "present", True, False), verb.attributive(), verb.present_attributive()]
    assert [*made, f"{verb.conditional_stem()}면"] == forms.split()


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("big", "큰 커요 컸어요"),
        ("red", "빨간 빨개요 빨갰어요"),
        ("white", "하얀 하얘요 하얬어요"),
        ("spicy", "매운 매워요 매웠어요"),
        ("long", "긴 길어요 길었어요"),
        ("fast", "빠른 빨라요 빨랐어요"),
        ("interesting", "재미있는 재미있어요 재미있었어요"),
        ("pretty", "예쁜 예뻐요 예뻤어요"),
    ],
)
def test_regular_and_irregular_korean_adjectives_are_conjugated(name: str, forms: str) -> None:
    adjective = korean.load_lexicon().adjectives[name]
    assert adjective.predicate
    predicates = [conjugate(adjective.predicate, mode, False, False) for mode in ("present", "past")]
    assert [adjective.attributive, *predicates] == forms.split()


def test_korean_negations_are_short_or_long_for_hada_verbs() -> None:
    verbs = korean.load_lexicon().verbs
    assert negate(verbs["go"], "past", False) == "안 갔어요"
    assert negate(verbs["go"], "could", True) == "못 가셨어요"
    assert negate(verbs["clean"], "past", False) == "청소하지 않았어요"
    assert negate(verbs["clean"], "could", False) == "청소하지 못했어요"
    assert negate(verbs["buy"], "can", False) == "살 수 없어요"


def test_a_sentence_is_negated_in_both_languages_or_in_neither() -> None:
    for sentence in korean_train():
        denied = re.search(r"(?:^| )[안못] |지 (?:않|못)|수 없|[이가] 없어요|아니에요", sentence.foreign)
        assert bool(denied) == bool(re.search(r"\b(?:not|cannot)\b", sentence.english)), sentence.foreign


def test_an_english_word_translates_one_korean_word_or_its_object_decides() -> None:
    lexicon = korean.load_lexicon()
    plurals = {noun.plural for noun in lexicon.nouns.values()} - {"", "="}
    nouns = [*(noun.english for noun in lexicon.nouns.values()), *plurals]
    assert [word for word, times in Counter(nouns).items() if times > 1] == []
    things: dict[str, list[str]] = {}
    for use in korean_grammar().sampler.object_uses.items:
        things.setdefault(use.verb.english.base, []).extend(f"{use.name} {noun.korean}" for noun in use.nouns)
    for verb, named in things.items():
        objects = [name.rpartition(" ")[2] for name in set(named)]
        assert len(set(objects)) == len(objects), verb


def test_korean_has_native_numbers_before_counters_and_sino_korean_ones_for_money_and_dates() -> None:
    assert [hangul.native_numeral(n) for n in (1, 2, 3, 20, 21, 34, 99)] == [
        "한",
        "두",
        "세",
        "스무",
        "스물한",
        "서른네",
        "아흔아홉",
    ]
    assert [hangul.sino_numeral(n) for n in (10, 15, 21, 5000, 10000)] == ["십", "십오", "이십일", "오천", "만"]
    assert hangul.sino_numeral(35_000) == "삼만 오천"
    assert hangul.sino_numeral(350_000) == "삼십오만"
    text = " ".join(sentence.foreign for sentence in korean_train())
    assert re.search(r"유월 \w+일에", text)
    assert re.search(r"시월 \w+일에", text)
    assert "육월" not in text
    assert "십월" not in text


@pytest.mark.parametrize(
    ("noun", "counter"),
    [("책", "권"), ("고양이", "마리"), ("사진", "장"), ("자동차", "대"), ("아이", "명"), ("커피", "잔")],
)
def test_korean_nouns_are_counted_with_their_counter(noun: str, counter: str) -> None:
    found = {
        word
        for sentence in korean_train()
        for word in re.findall(
            rf"\b{noun}[을를이가] (?:몇|[가-힣]+) (권|마리|장|대|명|잔|개|벌|통|부|그릇|켤레)\b", sentence.foreign
        )
    }
    assert found == {counter}
