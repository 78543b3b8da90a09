"""The German of the corpus is correct, by rules that are independent of the grammar."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from tools.corpora.choice import Sentence
from tools.corpora.german import words as german
from tools.corpora.german.clauses import TIMES
from tools.corpora.splits import sentences

GENDER = {  # written here, independently of the lexicon
    **dict.fromkeys(["Mann", "Lehrer", "Bruder", "Hund", "Apfel", "Kuchen", "Brief", "Hut", "Schlüssel"], "m"),
    **dict.fromkeys(["Frau", "Ärztin", "Katze", "Birne", "Suppe", "Zeitung", "Jacke", "Vase", "Kiste"], "f"),
    **dict.fromkeys(["Mädchen", "Kind", "Pferd", "Ei", "Buch", "Kleid", "Messer", "Glas", "Bett", "Auto"], "n"),
}
WEAK = ["Junge", "Polizist", "Student", "Bauer", "Nachbar"]
EIN_WORDS = r"(?:[Ee]in|[Kk]ein|[Mm]ein|[Dd]ein|[Ss]ein|[Uu]nser|[Ii]hr)"
ARTICLES_BY_GENDER = [  # determiner with an optional adjective (singular), genders
    (rf"{EIN_WORDS} (?:[a-zäöüß]+er )?", "m"),
    (rf"{EIN_WORDS} (?:[a-zäöüß]+es )?", "n"),
    (rf"{EIN_WORDS}e (?:[a-zäöüß]+e )?", "f"),
    (rf"{EIN_WORDS}en (?:[a-zäöüß]+en )?", "m"),
    (rf"{EIN_WORDS}em (?:[a-zäöüß]+en )?", "mn"),
    (rf"{EIN_WORDS}er (?:[a-zäöüß]+en )?", "f"),
    (r"(?:[Dd]er|[Dd]ieser) (?:[a-zäöüß]+e )?", "m"),
    (r"(?:[Dd]er|[Dd]ieser) (?:[a-zäöüß]+en )?", "f"),
    (r"(?:[Dd]ie|[Dd]iese) (?:[a-zäöüß]+e )?", "f"),
    (r"(?:[Dd]as|[Dd]ieses) (?:[a-zäöüß]+e )?", "n"),
    (r"(?:[Dd]en|[Dd]iesen) (?:[a-zäöüß]+en )?", "m"),
    (r"(?:[Dd]em|[Dd]iesem) (?:[a-zäöüß]+en )?", "mn"),
]
DETERMINER = rf"(?:{EIN_WORDS}(?:e|en|em|er)?|[Dd](?:er|ie|as|en|em)|[Dd]iese[rsnm]?)"
ARTICLE = re.compile(rf"{DETERMINER} (?:(?!{DETERMINER} )[a-zäöüß]+ )?$")
SAME_PLURAL = {"Lehrer", "Kuchen", "Schlüssel", "Mädchen", "Messer"}  # the plural looks like the singular
FINITE = {
    *("bin", "bist", "ist", "sind", "war", "warst", "waren", "habe", "hast", "hat", "haben"),
    *("werde", "wirst", "wird", "werden", "kann", "kannst", "können", "muss", "musst", "müssen"),
    *("darf", "darfst", "dürfen", "will", "willst", "wollen", "möchte", "möchtest", "möchten"),
}


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text)


@cache
def german_train() -> tuple[Sentence, ...]:
    return sentences("de-en", "train")


def test_articles_and_adjectives_agree_with_the_gender_of_the_noun() -> None:
    checked: Counter[str] = Counter()
    for sentence in german_train():
        for found in re.finditer(r"\w+", sentence.foreign):
            noun = found[0]
            if noun not in GENDER or noun in SAME_PLURAL:
                continue
            before = ARTICLE.search(sentence.foreign[: found.start()])
            if before:
                gender = GENDER[noun]
                fits = [pattern for pattern, genders in ARTICLES_BY_GENDER if gender in genders]
                assert any(re.fullmatch(pattern, before[0]) for pattern in fits), sentence.foreign
                checked[gender] += 1
    assert min(checked[gender] for gender in "mfn") > 500


def test_weak_masculines_are_inflected_everywhere_but_in_the_nominative() -> None:
    inflected = 0
    for sentence in german_train():
        for noun in WEAK:
            oblique = rf"(?i:d|dies|ein|kein|mein|dein|sein|ihr|unser)e[nm] (?:[a-zäöüß]+en )?{noun}"
            assert not re.search(rf"\b{oblique}\b", sentence.foreign), sentence.foreign
            inflected += bool(re.search(rf"\b{oblique}e?n\b", sentence.foreign))
    assert inflected > 200


def test_plurals_end_in_n_or_s_in_the_dative() -> None:
    found = []
    for sentence in german_train():
        found += re.findall(r"\bmit (?:d|dies|mein|dein|unser)en (?:[a-zäöüß]+en )?(\w+)", sentence.foreign)
    assert len(found) > 10
    assert {noun for noun in found if noun[-1] not in "ns"} == set()


def test_the_finite_verb_is_second_after_a_time() -> None:
    times = ["Gestern", "Morgen", "Übermorgen", "Vorgestern"]
    found = [words(s.foreign) for s in german_train() if words(s.foreign)[0] in times and s.foreign.endswith(".")]
    found = [sentence for sentence in found if sentence[1] != "Abend"]
    assert len(found) > 200
    assert {sentence[1] for sentence in found} <= FINITE


@pytest.mark.parametrize("conjunction", ["weil", "dass", "ob", "Obwohl", "Bevor"])
def test_the_finite_verb_is_last_after_a_conjunction(conjunction: str) -> None:
    found = []
    for sentence in german_train():
        match = re.search(rf"\b{conjunction} ([^,.]+)", sentence.foreign)
        if match:
            found.append(match[1].split()[-1])
    auxiliaries = [word for word in found if word in FINITE]
    assert len(found) > 100
    assert len(auxiliaries) > len(found) / 2
    present = {form for verb in german.load_lexicon().verbs.values() for form in (verb.first, verb.third)}
    assert set(found) - FINITE <= present | set(german.load_lexicon().verbs)


def test_separable_verbs_are_separated_in_main_clauses_and_whole_after_modals() -> None:
    text = " ".join(sentence.foreign for sentence in german_train())
    assert re.search(r"macht gerade [^.]* auf\.", text)
    assert re.search(r"ruft [^.]* an\.", text)
    assert re.search(r"(?:will|muss|kann|darf) [^.]* aufmachen\.", text)
    assert re.search(r"hat [^.]* aufgemacht\.", text)


def test_verbs_of_motion_take_sein_and_others_haben() -> None:
    for sentence in german_train():
        for participle in re.findall(
            r"\b(gegangen|gefahren|geflogen|gelaufen|geblieben|angekommen)\b", sentence.foreign
        ):
            head = sentence.foreign.split(participle)[0] + sentence.foreign.split(participle)[1][:8]
            assert re.search(r"\b(?:bin|bist|ist|sind|Bin|Bist|Ist|Sind)\b", head), sentence.foreign


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((2, "zwei"), (12, "zwölf"), (16, "sechzehn"), (17, "siebzehn"), (21, "einundzwanzig"), (30, "dreißig")),
        *((66, "sechsundsechzig"), (77, "siebenundsiebzig"), (100, "hundert"), (721, "siebenhunderteinundzwanzig")),
    ],
)
def test_german_numbers_put_the_ones_before_the_tens(value: int, said: str) -> None:
    assert german.number(value) == said


def test_german_ordinals_times_and_dates_are_idiomatic() -> None:
    ranks = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten", 19: "neunzehnten", 21: "einundzwanzigsten"}
    assert {value: german.ordinal(value) for value in ranks} == ranks
    spoken = {(time.foreign, time.english) for time in (*TIMES.clock, *TIMES.dates)}
    assert ("um halb vier", "at half past three") in spoken
    assert ("um halb eins", "at half past twelve") in spoken
    assert ("um ein Uhr", "at one o'clock") in spoken
    assert ("um Viertel vor eins", "at a quarter to one") in spoken
    assert ("am dritten Mai", "on the third of May") in spoken


def test_nicht_negates_definite_and_kein_indefinite_phrases() -> None:
    for sentence in german_train():
        denied = re.search(r"\b(?:nicht|kein\w*)\b", sentence.foreign)
        assert bool(denied) == bool(re.search(r"\b(?:not|cannot)\b", sentence.english)), sentence.foreign
        assert not re.search(r"\bnicht (?:ein|eine|einen|einem|einer)\b", sentence.foreign), sentence.foreign


def test_an_english_word_translates_one_german_word() -> None:
    lexicon = german.load_lexicon()
    nouns = [form for noun in lexicon.nouns.values() for form in {noun.english, noun.english_plural} - {""}]
    adjectives = [adjective.english for adjective in lexicon.adjectives.values()]
    verbs = [verb.english.base for name, verb in lexicon.verbs.items() if name != "stellen"]
    for said in (nouns, adjectives, verbs):
        assert [word for word, times in Counter(said).items() if times > 1] == []
    lying, standing = (set(lexicon.resolve(things)) for _, things in lexicon.tables["lists"]["putting"])
    assert not lying & standing, "put is legen or stellen by what is put"
