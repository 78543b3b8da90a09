"""Sentence segmentation: no text is lost, and boundaries are where readers see them."""

from __future__ import annotations

import re
import textwrap
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.builtin import builtin_pairs
from manyheads.text.sentences import LineBreaks, Span, ends_in_abbreviation, pieces_within, sentence_spans

MIXED = st.text(alphabet="ab AB3 .!?…。「」\"”',;、—-\n\t\u2028\u3000é\u0301가다Dr", max_size=60)


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


def lengths(texts) -> list[int]:
    return [len(text) for text in texts]


def token_lengths(texts) -> list[int]:
    """Return the lengths with white space between words counted as one blank, as tokenizers do."""
    return [len(" ".join(text.split())) for text in texts]


def join_spans(text: str, spans: list[Span]) -> str:
    """Return the text of the spans and of the white space between them."""
    last, whole = 0, ""
    for start, end in spans:
        assert text[last:start].strip() == ""
        assert text[start:end] == text[start:end].strip() != ""
        whole += text[last:start] + text[start:end]
        last = end
    assert text[last:].strip() == ""
    return whole + text[last:]


@settings(max_examples=150)
@given(st.one_of(MIXED, st.text(max_size=40)), st.sampled_from(["en", "de", "ko", "zh", ""]))
def test_the_sentences_and_the_blanks_between_them_are_the_text(text, language) -> None:
    assert join_spans(text, sentence_spans(text, language)) == text


@settings(max_examples=100)
@given(MIXED.filter(str.strip), st.integers(1, 12))
def test_pieces_and_the_blanks_between_them_are_the_text(text, limit) -> None:
    stripped = text.strip()
    spans = pieces_within(stripped, (0, len(stripped)), limit, token_lengths)
    assert join_spans(stripped, spans) == stripped
    assert all(size <= limit for size in token_lengths(stripped[start:end] for start, end in spans))


@settings(max_examples=100)
@given(MIXED)
def test_a_line_end_is_always_the_end_of_a_sentence(text) -> None:
    by_line = [sentence for line in text.replace("\u2028", "\n").split("\n") for sentence in sentences(line)]
    assert sentences(text) == by_line


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Dr. Smith paid 3.14 dollars. | He left at 5 p.m. | She stayed... and waited. | None!"),
        ("en", 'He asked, "Why?" and left. | "No." | Then J. R. came (at last!). | See Fig. 3 and e.g. Table 2.'),
        (
            "en",
            "He said no. | Then U.S. troops left example.com. | What?! | Really… | A.B. Miller, No. 5, wins.",
        ),
        ("en", "Version 2.0.1 is out. | 3 dogs run. | 1. First things first. | I have 3. | You have 4."),
        ("en", "Wait... | What? :) he said. | (Nobody laughed.) | [Laughter!] | – He went on."),
        ("de", "Am 3. Mai kam Dr. Müller, z.B. mit 2.5 kg Mehl. | „Was?“ | Er ging. | Das war im 19. Jahrhundert."),
        ("deu_Latn", "Am 3. Mai kam er. | Gut."),
        ("de", "Ich sah z. B. Herrn Dr. Müller, u. a. Tom. | Im Jahr 25 n. Chr. | Er ging i. d. R. Montags."),
        ("fr", "Allons-y. | Il y en a. | Voilà."),
        ("ru", "Это я. | Он тут."),
        ("no", "Den 3. Mai kom han. | Bra."),
        ("de", "Es waren 200. | Dann kam nichts … oder doch usw. und so fort. | «Ja!» | – Nein, d.h. vielleicht."),
        ("de", "Nr. 5 lebt. | Herr Prof. Dr. Dipl.-Ing. Maier sagt: „Es gibt ca. 30 Stück.“ | Gut."),
        (
            "ko",
            '네. | 알겠습니다. | 2020. 5. 3. 에 갔어요! | 그래요... | 3.5kg입니다. | "좋아." | 그가 말했다.',
        ),
        ("fr", "Il dit : « Oui ! » | Elle part. | Où ? | Là-bas."),
        ("hi", "यह एक है। | वह दो है॥ | हाँ।"),
        ("ur", "یہ ایک ہے۔ | کیا؟ | وہ دو ہے۔"),
        ("hy", "Սա մեկ է։ | Դա երկու է։"),
        ("am", "ይህ አንድ ነው። | ያ ሁለት ነው።"),
        ("km", "នេះជាមួយ។ | នោះជាពីរ៕ | បាទ។"),
        ("my", "ဒါတစ်ခုပါ။ | ဒါနှစ်ခုပါ။"),
        ("ka", "ეს ერთია. | ის ორია! | კი."),
    ],
)
def test_sentences_end_where_people_see_their_end(language, text) -> None:
    parts = text.split(" | ")
    assert sentences(" ".join(parts), language) == parts


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "你好。|再见！|「好。」|他说。|价格是3.5元。|真的？！|是的"),
        ("ja", "「はい。」と言った。|彼は来た。|行く？|うん。"),
    ],
)
def test_sentences_of_languages_without_blanks_end_without_blanks(language, text) -> None:
    parts = text.split("|")
    assert sentences("".join(parts), language) == parts


@pytest.mark.parametrize(
    ("language", "abbreviations", "words"),
    [
        ("en", ["cats, etc", "by Dr", "J. R", "at 5 p.m", "the U.S"], ["where am I", "said no", "the 3", "runs"]),
        ("de", ["Hunde usw", "z.B", "am 3"], ["im Jahr 2010", "Hund"]),
        ("ru", ["и т.д"], ["да"]),
        ("", ["A"], ["", "Hund ", "„", "a" * 50]),
    ],
)
def test_the_dot_of_an_abbreviation_is_known_at_the_end(
    language: str, abbreviations: list[str], words: list[str]
) -> None:
    assert [text for text in (*abbreviations, *words) if ends_in_abbreviation(text, language)] == abbreviations


@pytest.mark.parametrize("width", [30, 72])
@pytest.mark.parametrize("number", [0, 1])
def test_sentences_over_several_lines_are_known_and_sentences_on_lines_of_their_own(
    number: int, width: int
) -> None:
    lines = [pair[number] for pair in builtin_pairs("de-en", "train", source="de", target="en")[:300]]
    breaks = LineBreaks()
    assert list(breaks.watch(lines)) == lines
    assert not breaks.many
    breaks = LineBreaks()
    wrapped = textwrap.wrap(" ".join(lines), width)
    assert list(breaks.watch(wrapped)) == wrapped
    assert breaks.many
    for number in breaks.broken:
        assert not re.search(r"[.?!]$", wrapped[number - 1])


@pytest.mark.parametrize(
    "text",
    [
        "apples\npears and plums\nred wine\ncheese", "- Milk and eggs\n- bread and butter.", "Red cars\nblue cars.",
        "How to cook fish\nhow to cook meat\nhow to cook rice", "hello how are you\ni am fine.\nwhy not\nok.",
        "The End of a Day\nThe Beginning of a Night\nIt ends.", "나는 어제 친구를 만나서\n영화를 보았다.",
        "私は昨日友達に会って\n映画を見ました。", "我昨天和朋友一起\n看了电影。", "", "\n\n",
    ],
)  # fmt: skip
def test_lists_titles_careless_text_and_scripts_without_case_are_no_broken_sentences(text: str) -> None:
    breaks = LineBreaks()
    assert list(breaks.watch(text.split("\n"))) == text.split("\n")
    assert not breaks.many


def test_spans_exclude_line_ends_and_blanks() -> None:
    text = "  One.  Two.\n\n\tThree\r\nfour. \n"
    assert sentence_spans(text) == [(2, 6), (8, 12), (15, 20), (22, 27)]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "!", "\u3000", "a", "."])
def test_short_or_empty_texts_have_at_most_one_sentence(text) -> None:
    assert sentences(text) == [text.strip()] * bool(text.strip())


def test_a_long_sentence_is_cut_at_its_clauses_then_between_words_then_anywhere() -> None:
    text = "one two three, four five six; seven eight nine"

    def cut(limit: int) -> list[str]:
        return [text[start:end] for start, end in pieces_within(text, (0, len(text)), limit, lengths)]

    assert cut(99) == [text]
    assert cut(30) == ["one two three, four five six;", "seven eight nine"]
    assert cut(16) == ["one two three,", "four five six;", "seven eight nine"]
    assert cut(10) == ["one two", "three,", "four five", "six; seven", "eight nine"]
    assert cut(3)[:4] == ["one", "two", "thr", "ee,"]


def test_pieces_are_about_equally_long() -> None:
    text = "word " * 99 + "word"
    sizes = [end - start for start, end in pieces_within(text, (0, len(text)), 100, lengths)]
    assert len(sizes) <= 7
    assert max(sizes) <= 1.35 * min(sizes)


def test_a_character_is_not_separated_from_its_combining_accent() -> None:
    text = "e\u0301" * 40
    for start, _ in pieces_within(text, (0, len(text)), 7, lengths):
        assert text[start] == "e"


COUNT = 100_000
LONG = {
    "dots": "." * COUNT + "x",
    "dots and blanks": ". " * COUNT,
    "one word": "a" * COUNT,
    "sentences": "Ab c. " * (COUNT // 5),
    "blanks": "a" + " " * COUNT + "b",
    "blanks and words": "a" + " " * (COUNT // 2) + "b " * (COUNT // 4),
    "wide": "。" * COUNT,
    "line ends": "\n" * COUNT,
    "commas": "a, " * (COUNT // 3),
    "quotes": '."' * (COUNT // 2) + "x",
    "dashes": "- " * (COUNT // 2),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_hundred_thousand_characters_take_a_moment(text) -> None:
    start = time.process_time()
    spans = sentence_spans(text)
    for span in spans[:2]:
        pieces_within(text, span, 100, lengths)
    assert join_spans(text, spans) == text
    assert time.process_time() - start < 20, "quadratic time would be a quarter of an hour"
