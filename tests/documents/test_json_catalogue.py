"""JSON of translations: values are replaced in their place, keys and everything else stay."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated
from manyheads.errors import DataError

_COPIED = re.compile(r"\{[^{}]*\}+|\$\w+(?:\([^)]*\)|\$)?")


def document(text: str, target: str = "ko", name: str = "x.json") -> Document:
    return read_document(text.encode(), "json", ReadOptions(name, "en", target))


def shouted(text: str) -> str:
    """Return a text in capitals, its placeholders as they were."""
    pieces = _COPIED.split(text)
    return "".join(
        piece.upper() + copied for piece, copied in zip(pieces, [*_COPIED.findall(text), ""], strict=True)
    )


def translate(text: str, target: str = "ko", name: str = "x.json") -> str:
    found = document(text, target, name)
    return found.write(Translated(shouted(unit.text)) for unit in found.units).decode()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('{"a": {"b.c": ["one", 2, true]}}', '{"a": {"b.c": ["ONE", 2, true]}}'),
        ('{"a": "Hi {{name}}, $t(b)"}', '{"a": "HI {{name}}, $t(b)"}'),
        ('["a \\"b\\"\\n <i>c</i>"]', '["A \\"B\\"\\n <i>C</i>"]'),
        ('{"a": "\\u00e9"}', '{"a": "\\u00c9"}'),
        ('{"a": "é"}', '{"a": "É"}'),
        ('{"a": "x <\\/b> \\u0026 y"}', '{"a": "X <\\/b> \\u0026 Y"}'),
        ('{"a": "\\ud800 x"}', '{"a": "\\ud800 x"}'),  # half of a character
        ('{"n": "You {count, plural, =1 {one} other {# and {x}}}!"}',
         '{"n": "YOU {count, plural, =1 {ONE} other {# AND {x}}}!"}'),
        ('{"n": "{a, select, x{{b, plural, other{two}}} other{\'{\'z}}"}',
         '{"n": "{a, select, x{{b, plural, other{TWO}}} other{\'{\'Z}}"}'),
        ('{"n": "open { brace"}', '{"n": "OPEN { BRACE"}'),
        # ARB
        ('{"@@locale": "en", "a": "b {c}", "@a": {"description": "d"}}',
         '{"@@locale": "ko", "a": "B {c}", "@a": {"description": "d"}}'),
        # messages.json of extensions
        ('{"a": {"message": "b $C$", "description": "d", "placeholders": {"c": {"content": "$1 d"}}}}',
         '{"a": {"message": "B $C$", "description": "d", "placeholders": {"c": {"content": "$1 d"}}}}'),
    ],
)  # fmt: skip
def test_texts_are_replaced_and_the_rest_stays(text: str, result: str) -> None:
    assert translate(text) == result
    assert json.loads(result)


def test_arb_is_known_by_its_name_too_and_its_locale_has_an_underscore() -> None:
    assert translate('{"@a": {"b": "c"}, "a": "b"}', name="x.arb") == '{"@a": {"b": "c"}, "a": "B"}'
    assert translate('{"@@locale":"en","a":"b"}', "pt-BR") == '{"@@locale":"pt_BR","a":"B"}'


@pytest.mark.parametrize(
    ("target", "further"),
    [("de", []), ("ru", ["few", "many"]), ("lv", ["zero"])],
)
def test_i18next_gets_the_plural_forms_of_the_target(target: str, further: list[str]) -> None:
    text = '{\n  "item_one": "{{count}} item",\n  "item_other": "{{count}} items",\n  "show_other": "more"\n}'
    expected = text.replace('item"', 'ITEM"').replace("items", "ITEMS").replace("more", "MORE")
    for category in reversed(further):
        expected = expected.replace('ITEMS",\n', f'ITEMS",\n  "item_{category}": "{{{{count}}}} ITEMS",\n', 1)
    assert translate(text, target) == expected
    done = text.replace("show_other", "item_few").replace("more", "{{count}} few")
    assert translate(done, "ru").count("item_few") == 1


def test_a_translation_without_its_placeholders_is_not_written() -> None:
    found = document('{"a": "Hi {{name}}"}')
    assert found.write([Translated("Hi")]) == b'{"a": "Hi {{name}}"}'
    assert found.units[0].is_doubtful(Translated("Hi"))
    assert not found.units[0].is_doubtful(Translated("안녕 {{name}}"))


@pytest.mark.parametrize(
    "text", ['{"a": }', "", '{"a": "b"', "[" * 100_000, '"' * 100_001, "{'a': 1}", '{"a": "b"} c']
)
def test_what_is_no_json_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(DataError, match=r"^x\.json is no JSON that can be read[^\n]*$"):
        document(text)


STRINGS = st.lists(
    st.sampled_from(["a", "Hund ", "{{x}}", "{", "}", "{n, plural, one {", "} other {", "'", '"', "\\", "\n", "é",
                     "<b>", "</b>", "&F", "/", "\u0001", "한", "$t(a)", "\U0001f600", "_other"]), max_size=6,
).map("".join)  # fmt: skip
VALUES = st.recursive(
    STRINGS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_any_json_stays_byte_for_byte_and_its_structure_stays(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = document(text, "de")
    assert found.write(Translated(unit.text) for unit in found.units) == text.encode()
    kinds = re.compile(r'"(?:[^"\\]|\\.)*"')
    assert kinds.sub('""', translate(text, "de")) == kinds.sub('""', text)
    json.loads(translate(text, "de"))
