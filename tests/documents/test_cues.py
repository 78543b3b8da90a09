"""Sentences over several cues are one unit; the marks around and within them stay."""

from __future__ import annotations

import time

import pytest
from tests.documents.subtitle_files import in_capitals, read, reversed_words, texts_of, written

from manyheads.documents.cues import seconds
from manyheads.documents.units import Translated, Unit


def film(*cues: str, pause: float = 0.1, seconds_each: float = 3.0) -> str:
    """Return SubRip subtitles."""
    blocks = []
    for number, text in enumerate(cues):
        first = number * (seconds_each + pause)
        times = [f"00:00:{time:06.3f}".replace(".", ",") for time in (first, first + seconds_each)]
        blocks.append(f"{number + 1}\n{times[0]} --> {times[1]}\n{text}\n")
    return "\n".join(blocks)


def test_a_time_is_read_as_seconds() -> None:
    times = ["01:02:03,456", "02:03.456", "1:02:03.45", "", "x"]
    assert [round(seconds(time), 3) for time in times] == [3723.456, 123.456, 3723.45, 0, 0]


@pytest.mark.parametrize(
    ("cues", "texts"),
    [
        (["I do not", "know."], ["I do not know."]),
        (["Yes. I do not", "know. Do you?"], ["Yes. I do not know. Do you?"]),
        (["I saw Dr.", "Smith.", "He waved."], ["I saw Dr. Smith.", "He waved."]),
        (["I saw...", "...a dog.", "He ran..."], ["I saw... ...a dog.", "He ran..."]),
        (["我不知道", "你在哪里。"], ["我不知道你在哪里。"]),
        (["어디에 있는지", "모르겠어요."], ["어디에 있는지 모르겠어요."]),
        (["{\\an8}I do not", "know."], ["I do not", "know."]),
        (["THE END", "of it."], ["THE END", "of it."]),
        (["We sing", "♪ la la ♪", "and dance."], ["We sing", "la la", "and dance."]),
        (["I do not", "ANN: Know.", "- what he", "wants."], ["I do not", "Know.", "what he wants."]),
        (["no marks", "in this file", "at all"], ["no marks", "in this file", "at all"]),
        (["one,"] * 9 + ["End."] * 9, ["one, " * 7 + "one,", "one, End."] + ["End."] * 8),
    ],
)
def test_cues_are_joined_where_a_sentence_goes_on(cues: list[str], texts: list[str]) -> None:
    assert texts_of(film(*cues), "srt") == texts


def test_a_long_pause_ends_a_sentence() -> None:
    assert texts_of(film("I do not", "know.", pause=1.9), "srt") == ["I do not know."]
    assert texts_of(film("I do not", "know.", pause=2.1), "srt") == ["I do not", "know."]


@pytest.mark.parametrize(
    ("cue", "texts"),
    [
        ("- Hi.\n- Hello, \n  you.", ["Hi.", "Hello, you."]),
        ("<i>- Hi.</i>\n<i>- Hello.</i>", ["Hi.", "Hello."]),
        ("It is\n-5 degrees.", ["It is -5 degrees."]),
        ("MAN: Hi.\nANN-MARIE 2: Hello.", ["Hi.", "Hello."]),
        ("He said: Hi.", ["He said: Hi."]),
        ("♪ We sing ♪\n♪ a song ♪", ["We sing", "a song"]),
        ("# We sing #", ["We sing"]),
        ("[door creaks]", ["door creaks"]),
        ("(laughs) No.\n[Ann]: Yes. (sighs)", ["laughs", "Ann", "sighs", "No. Yes."]),
        ("[man\nspeaking <i>low</i>]", ["man speaking low"]),
        ("I like (really like) you.", ["I like (really like) you."]),
        ("{\\an8}- [sighs] No.", ["sighs", "No."]),
        ("I do\nnot\nknow.", ["I do not know."]),
        ("42", []),
    ],
)
def test_marks_and_notes_are_no_part_of_the_running_text_and_stay(cue: str, texts: list[str]) -> None:
    text = film(cue)
    assert texts_of(text, "srt") == texts
    changed = written(read(text, "srt"), in_capitals)
    assert changed.upper().split() == text.upper().split()
    for mark in "-[](){}♪#:<>":
        assert changed.count(mark) == text.count(mark)


def test_tags_stay_in_their_cue() -> None:
    text = film("<i>I do not</i>", "<b>know</b> him.")
    translation = Translated("Ich kenne ihn nicht.", "0-0 3-1 4-2 2-3")
    changed = written(read(text, "srt"), lambda unit: translation)
    assert changed == text.replace("I do not", "Ich").replace("<b>know</b> him.", "<b>kenne</b> ihn nicht.")


def test_a_note_within_a_sentence_keeps_its_brackets_and_place() -> None:
    text = film("I do [sighs] not", "know.")

    def translate(unit: Unit) -> Translated:
        return Translated("seufzt]" if unit.text == "sighs" else unit.text.upper())

    assert written(read(text, "srt"), translate) == film("I DO [seufzt] NOT", "KNOW.")


def test_source_and_translation_stand_under_each_other_in_a_bilingual_file() -> None:
    changed = written(read(film("<i>Hi</i> there.", "- No.\n- Yes."), "srt"), in_capitals, bilingual=True)
    assert changed == film("<i>Hi</i> there.\n<i>HI</i> THERE.", "- No.\nNO.\n- Yes.\nYES.")


@pytest.mark.parametrize(
    ("target", "options", "longest"),
    [
        ("de", {}, 42),
        ("de", {"line_length": 30}, 30),
        ("ko", {}, 16),
        ("zh", {"line_length": 18}, 18),
        ("ja", {}, 16),
    ],
)
def test_lines_have_the_length_of_the_target_language(target: str, options: dict[str, int], longest: int) -> None:
    text = film("The dog was very tired, and the cat was not.")
    word = {"de": "Hund ", "ko": "강아지 ", "zh": "狗", "ja": "いぬ"}[target]
    translation = (word * 99)[: 2 * longest - 4]
    changed = written(read(text, "srt", target=target, **options), lambda unit: Translated(translation))
    lines = changed.split("\n")[2:-1]
    assert len(lines) == 2
    assert max(map(len, lines)) <= longest
    one_line = written(read(text, "srt", target=target, **options), lambda unit: Translated(translation[:9]))
    assert len(one_line.split("\n")[2:-1]) == 1


def test_a_word_moves_to_the_cue_with_time_to_read_it() -> None:
    text = film("I do not know", "him.", seconds_each=1)
    translation = Translated("Ich kenne diesen Mann nicht.", "0-0 3-1 4-2 4-3 2-4")

    def cues(**options: float) -> list[str]:
        changed = written(read(text, "srt", target="de", **options), lambda unit: translation)
        return [block.split("\n", 2)[2].strip() for block in changed.split("\n\n")]

    assert cues(reading_speed=50) == ["Ich kenne", "diesen Mann nicht."]
    assert cues() == ["Ich kenne diesen", "Mann nicht."]


@pytest.mark.parametrize(
    "piece",
    ["<", "[", "(", "{", "{\\p1}", "<i>", "- ", "\n- ", "♪ ", "A ", "A", "[a] ", "[a]\n", "\n", "\\N", "A:\n"],
)
@pytest.mark.parametrize("form", ["srt", "vtt", "ass"])
def test_hostile_text_is_read_in_linear_time(form: str, piece: str) -> None:
    head = {"srt": film("")[:-2], "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000", "ass": "[Script Info]\n[Events]"}[
        form
    ]
    body = "Dialogue: 0,0:00:01.00,0:00:02.00,A,,0,0,0,," if form == "ass" else ""
    text = f"{head}\n{body}{(piece * 2_000).replace(chr(10) * 2, chr(10))}x y"
    start = time.process_time()
    document = read(text, form)
    written(document, reversed_words)
    assert time.process_time() - start < 10
