"""Tags, access keys and placeholders of messages stay."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.documents.messages import (
    Message,
    keeps_placeholders,
    message_block,
    message_tokens,
)
from manyheads.documents.units import Translated


def message(text: str) -> Message:
    block, key = message_block([*message_tokens(text)])
    return Message(block, 0, len(text), access_key=key)


@pytest.mark.parametrize(
    ("text", "plain", "translation", "result"),
    [
        ("&File", "File", "Datei", "&Datei"),
        ("_Save", "Save", "Alles sichern", "Alles _sichern"),
        ("&Open...", "Open...", "열기...", "열기(&O)..."),
        ("열기(&O)...", "열기...", "Open...", "&Open..."),
        ("Save &as", "Save as", "Sichern als", "Sichern &als"),
        ("&Save %s", "Save %s", "%s sichern", "%s &sichern"),
        ("file_name", "file_name", "Dateiname", "Dateiname"),
        ("AT&T &amp; R&D", "AT&T &amp; R&D", "AT&T &amp; R&D", "AT&T &amp; R&D"),
        ("The name of _start is not known", "The name of _start is not known", "x", "x"),
        ("  <b>Yes</b>, <br/>no\n", "Yes, no", "Ja, nein", "  <b>Ja</b>, <br/>nein\n"),
    ],
)
def test_tags_and_access_keys_are_no_part_of_the_text_and_stand_in_the_translation(
    text: str, plain: str, translation: str, result: str
) -> None:
    assert message(text).text == plain
    assert message(text).with_tags(Translated(translation)) == result


PIECES = st.sampled_from(
    ["<b>", "</b>", "<br/>", "&F", "_", "&", "~", " ", "\n", "Hund", "%s", "{x}", "<", ">", "a<b "]
)


@settings(max_examples=300)
@example("_Hund &F")  # two keys are none
@given(st.lists(PIECES, max_size=10).map("".join))
def test_a_message_with_its_own_text_has_the_tags_and_letters_that_it_had(text: str) -> None:
    unit = message(text)
    found = unit.with_tags(Translated(unit.text, " ".join(f"{n}-{n}" for n in range(len(unit.text.split())))))
    assert sorted(re.sub(r"\s", "", found)) == sorted(re.sub(r"\s", "", text))


@pytest.mark.parametrize(
    ("text", "translation", "kept"),
    [
        ("%s of %d", "%s von %d", True),
        ("%s of %d", "%d von %s", False),  # a program would read a number as a text
        ("%1$s of %2$d", "%2$d von %1$s", True),
        ("%(a)s of {b} and %1", "%1, {b}, %(a)s", True),
        ("100%% of %s", "100% von %s", False),
        ("{{name}} $t(key) $COUNT$ #", "# $COUNT$ $t(key) {{name}}", True),
        ("{ $name } came", "Er kam", False),
        ("C# is fun", "C ist gut", True),
    ],
)
def test_a_translation_has_the_placeholders_of_its_text(text: str, translation: str, *, kept: bool) -> None:
    assert keeps_placeholders(text, translation) == kept
    assert message(text).is_doubtful(Translated(translation)) != kept
    assert message(text).is_doubtful(Translated(text, doubtful=True))


def test_messages_of_signs_alone_are_read_fast() -> None:
    for part in ("<", "<a ", "<a", "&", "_", "%", "{", "$t(", "#"):
        text = part * (20_000 // len(part))
        keeps_placeholders(text, message(text).with_tags(Translated(text)))
