"""A translation ends with the kind of mark of its source, and begins small where it does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.inference.translation.match_source import match_source

LANGUAGES = ["de", "en", "fr", "es", "el", "ar", "ur", "hi", "zh", "ja", "ko", "th", "hy", "tr", "ka", "xx", ""]


@pytest.mark.parametrize(
    ("languages", "source", "output", "expected"),
    [
        ("de-en", "Ein Hund läuft?", "A dog runs.", "A dog runs?"),
        ("en-de", "A dog runs!", "Ein Hund läuft", "Ein Hund läuft!"),
        ("de-en", "Einstellungen", "Settings.", "Settings"),
        ("de-en", "Name:", "Name.", "Name:"),
        ("de-en", "ein Hund, ", "A dog.", "a dog,"),
        ("de-en", "Was?!", "What.", "What?"),
        ("de-en", "Ende …", "The end.", "The end..."),
        ("de-en", "50 %", "50%.", "50%"),
        ("en-de", "How does he run etc.?", "Wie läuft er!", "Wie läuft er?"),
        ("de-en", "Wo bin ich?", "Where am I.", "Where am I?"),
        ("de-en", "Hund?\u200b", "Dog.\ufeff", "Dog?\ufeff"),
        ("de-en", "e\u0301te\u0301?", "E\u0301te\u0301\u2060.", "e\u0301te\u0301\u2060?"),
        ("de-en", "Er fragt: „Läuft er?“", 'He asks: "He runs"', 'He asks: "He runs?"'),
        ("de-en", "Läuft er (ein Hund)?", "Does he (a dog) run (fast)", "Does he (a dog) run (fast)?"),
        ("en-fr", "Does he run?", "Court-il.", "Court-il\u00a0?"),
        ("en-fr", "He runs.", "Il court ?", "Il court."),
        ("en-fr", "Yes", "« Oui ! »", "« Oui »"),
        ("en-es", "Hi. Does he run?", "Hola. Corre.", "Hola. ¿Corre?"),
        ("en-es", "He runs.", "¿Corre?", "Corre."),
        ("en-es", "He runs!", "«¿Corre?»", "«¡Corre!»"),
        ("en-el", "Is it?", "Είναι.", "Είναι;"),
        ("el-en", "Είναι;", "It is.", "It is?"),
        ("en-ar", "Is it?", "هل هو.", "هل هو؟"),
        ("fa-en", "است؟", "It is.", "It is?"),
        ("en-ur", "He runs.", "وہ دوڑتا ہے", "وہ دوڑتا ہے۔"),
        ("en-hi", "He runs.", "वह दौड़ता है", "वह दौड़ता है।"),
        ("en-zh", "A dog runs?", "一只狗在跑。", "一只狗在跑？"),
        ("zh-en", "一只狗在跑！", "A dog runs.", "A dog runs!"),
        ("en-ja", "A dog,", "犬。", "犬、"),
        ("en-ko", "Does a dog run?", "개가 달린다.", "개가 달린다?"),
        ("de-tr", "insel", "Isparta", "ısparta"),
        ("de-it", "die Hunde", "I cani", "i cani"),
        ("de-en", "„Ein Hund läuft.“", "A dog runs.", "„A dog runs.“"),
        ("de-en", "„Ein Hund läuft“", '"A dog" "runs', "„A dog runs“"),
        ("de-en", "«Ein Hund»?", "A dog", "«A dog»?"),
        ("ja-en", "「はい。」", "Yes", "「Yes.」"),
        ("hy-en", "նա վազում է։", "He runs.", "he runs."),
    ],
)
def test_the_mark_at_the_end_and_a_small_letter_at_the_beginning_are_those_of_the_source(
    languages: str, source: str, output: str, expected: str
) -> None:
    source_language, target_language = languages.split("-")
    assert match_source(output, source, (source_language, target_language)) == expected


@pytest.mark.parametrize(
    ("languages", "source", "output"),
    [
        ("de-en", "Ein Hund läuft.", "A dog runs."),
        ("zh-en", "一只狗。", "A dog."),
        ("de-en", "„Läuft er?“.", '"Does he run?"'),
        ("de-en", "Hunde, Katzen usw.", "Dogs, cats and so on"),
        ("de-en", "Hunde und Katzen", "Dogs, cats, etc."),
        ("en-de", "the 3rd", "der 3."),
        ("de-en", "Plan von A. B.", "Plan of A"),
        ("de-en", "Ein Hund 🙂", "A dog."),
        ("de-en", "Ein Hund ❤\ufe0f", "A dog."),
        ("de-en", "Ein Hund?", "A dog 🙂"),
        ("de-en", "...", "A dog"),
        ("de-en", "Ein Hund?", ""),
        ("de-en", "Ein Hund?", "\u200b"),
        ("th-en", "สุนัขวิ่ง", "A dog runs."),
        ("en-th", "Does a dog run?", "สุนัขวิ่ง"),
        ("en-hy", "Does he run?", "Նա վազու՞մ է։"),
        ("en-de", "the dog", "Der Hund"),
        ("de-en", "ich laufe", "I'm running"),
        ("de-en", "amerikanische Hunde", "U.S. dogs"),
        ("de-en", "neue Hunde", "NATO dogs"),
        ("de-en", "von ihm", "J. Miller"),
        ("de-en", "hier wohnt Peter", "Peter lives here"),
        ("de-en", "iPhones sind gut", "The phones are good"),
        ("de-en", "example.com ist gut", "The site is good"),
        ("de-en", "3 hunde", "Dogs"),
        ("de-en", "„Ein“ oder „zwei“", "One or two"),
        ("de-en", "„Ein Hund", "A dog"),
        ("de-en", "„Ein Hund“", '"A dog"'),
        ("ka-en", "ძაღლი", "Dog"),
        ("src-tgt", "ein Hund?", "A dog."),
    ],
)
def test_a_translation_that_fits_or_that_the_rules_do_not_cover_is_left_as_it_is(
    languages: str, source: str, output: str
) -> None:
    source_language, target_language = languages.split("-")
    assert match_source(output, source, (source_language, target_language)) == output


LETTERS = st.sampled_from(
    [*'aAIİßé Dr.etc usw?!…:;,。？，؟۔·’"»“„「」)¿¡-3%🙂', "\u200b", "\ufeff", "\u0301", "\ufe0f", "\ud800"]
)
TEXTS = st.text(max_size=12) | st.lists(LETTERS, max_size=14).map("".join)


@settings(max_examples=400)
@given(TEXTS, TEXTS, st.sampled_from(LANGUAGES), st.sampled_from(LANGUAGES))
def test_any_text_is_matched_once_for_all(source: str, output: str, source_language: str, language: str) -> None:
    languages = source_language, language
    found = match_source(output, source, languages)
    assert len(found) <= len(output) + 5
    assert match_source(found, source, languages) == found


@pytest.mark.parametrize("piece", ["!", ".", "a", "a.", "\u200b", "»", "🙂?", "e\u0301", "¿"])
def test_a_long_text_is_matched_at_its_ends(piece: str) -> None:
    text = piece * 100_000
    for source, output in ((text, "A."), ("a?", text), (text, text)):
        assert len(match_source(output, source, ("en", "es"))) <= len(output) + 2
