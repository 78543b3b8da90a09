"""Repair lines whose text can be read back: misread UTF-8, HTML entities, access keys, typographic marks."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Mapping

from bitext.access_keys import without_access_keys
from bitext.typography import without_marks

# Characters of Windows-1252 -> their bytes; bytes that it does not define are the control characters of Latin-1.
_WINDOWS = {
    chr(byte): bytes([byte]).decode("cp1252") for byte in range(0x80, 0xA0) if byte not in b"\x81\x8d\x8f\x90\x9d"
}
_BYTES = {chr(byte): byte for byte in range(0x80, 0x100)} | {_WINDOWS[byte]: ord(byte) for byte in _WINDOWS}
_NEXT = "[{}]".format("".join(symbol for symbol, byte in _BYTES.items() if byte < 0xC0))  # bytes after the first
_LETTER = f"(?:[Â-Þ]{_NEXT}|[à-ï]{_NEXT}{{2}}|[ð-ô]{_NEXT}{{3}})"
_MISREAD = re.compile(f"{_LETTER}+")
_MISREAD_LINE = re.compile(f"(?:[\x00-\x7f]|{_LETTER})*")
# What misread letters are: letters of two bytes, punctuation, symbols, emoji; beside them letters of three bytes.
_SHORT = "\x80-\u07ff\u2000-\u27bf\ufe0f\U0001f1e6-\U0001faff"
_SENSIBLE = re.compile(f"[{_SHORT}\u0800-\u1fff\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_PLAUSIBLE = re.compile(f"[{_SHORT}]|.{{2,}}")
# Correct text that looks alike: two capitals ("ÍŽ"), and a letter before punctuation, at the end of a word in
# capitals ("AMANHÃ”", "SÅ…", "10 Å²") or of a quotation ("«café»…", "« café\xa0»").
_CLOSING = "’‘”“»«›‹…–—™®"
CLOSED_LETTER = re.compile(
    rf"[Ä-Þ][ŠŽŒŸ](?![a-zß-ÿ])|(?:(?<![a-zß-ÿ])(?:[ÂÃ][{_CLOSING}]|[Ä-Þ][{_CLOSING}\xa0-\xbf])"
    rf"|[à-ï][{_CLOSING}\xa0][{_CLOSING}\xa0-\xbf€])(?![^\W\d_])"
)
_LONE_CONTROL = re.compile("(?<![\x80-\x9fÂ-ô])[\x80-\x84\x86-\x9f]")  # a character of Windows-1252 read as Latin-1

_ESCAPE = re.compile(r"&(?:#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[A-Za-z][A-Za-z0-9]{1,30});|\\u[0-9a-fA-F]{4}")
_MARKUP = re.compile(r"</?[A-Za-z]|&(?!#?\w+;)")  # beside these, &lt; and &amp; are no damage
# In a text about escapes they stand alone in quotation marks, or in code between backticks.
_QUOTED_ESCAPE = re.compile(rf"['\"“„«‘(](?:{_ESCAPE.pattern})+['\"”“»’)]|`[^`]*(?:{_ESCAPE.pattern})[^`]*`")

Repair = Callable[[str, str], tuple[str, str]]


def repair_mojibake(text: str) -> str:
    """Return a text with the letters of which the UTF-8 bytes were decoded as Windows-1252 or Latin-1.

    Where all letters of a line can be such bytes, all are repaired; else only those that correct text cannot hold.
    """
    if text.isascii():
        return text
    found = {match[0]: _decode(match[0]) for match in _MISREAD.finditer(text) if not _is_closed(match)}
    found = {misread: letters for misread, letters in found.items() if _SENSIBLE.fullmatch(letters)}
    if _PLAUSIBLE.fullmatch("".join(found.values())):
        whole = _MISREAD_LINE.fullmatch(text)
        repaired = _MISREAD.sub(lambda match: _decode(match[0]) if whole else found.get(match[0], match[0]), text)
        if repaired != text:
            return repair_mojibake(repaired)  # text may be decoded wrongly twice
    return _LONE_CONTROL.sub(lambda match: _WINDOWS.get(match[0], match[0]), text)


def _is_closed(match: re.Match[str]) -> bool:
    closed = CLOSED_LETTER.match(match.string, match.start())
    return closed is not None and closed.end() == match.end()


def _decode(letters: str) -> str:
    """Return the letters that were misread; the same if their bytes are no UTF-8."""
    try:
        return bytes(map(_BYTES.__getitem__, letters)).decode()
    except UnicodeDecodeError:
        return letters


def is_escaped(text: str) -> bool:
    """Return whether a text holds HTML entities."""
    return "&" in text and any(_unescaped(escape, keep="") != escape for escape in _ESCAPE.findall(text))


def unescape(text: str) -> str:
    r"""Return a text without HTML entities and escaped letters, such as `\u00e4`, replaced once.

    A text about them stays as it is: with an entity in quotation marks, or `&amp;` beside a tag or another `&`.
    """
    if ("&" not in text and "\\u" not in text) or _QUOTED_ESCAPE.search(text):
        return text
    markup = _MARKUP.search(text)
    return _ESCAPE.sub(lambda match: _unescaped(match[0], keep="<>&" if markup else ""), text)


def _unescaped(escape: str, keep: str) -> str:
    """Return the character of an escape; the same escape if it has none that can stand in a line."""
    symbol = html.unescape(escape) if escape[0] == "&" else chr(int(escape[2:], 16))
    if symbol in ("\t", "\n", "\r"):
        return " "
    letter = symbol.isalpha() and not symbol.isascii()
    sound = (
        letter
        if escape[0] == "\\"
        else all(unicodedata.category(part) not in ("Cc", "Cn", "Cs") for part in symbol)
    )
    return symbol if sound and symbol not in ("", "\ufffd", *keep) else escape


def _of_each_side(repair: Callable[[str], str]) -> Repair:
    return lambda source, target: (repair(source), repair(target))


# Name of the repair -> function that returns both sides of a pair repaired; they are applied in this order.
REPAIRS: Mapping[str, Repair] = {
    "mojibake": _of_each_side(repair_mojibake),
    "escapes": _of_each_side(unescape),
    "access-keys": without_access_keys,
    "typography": _of_each_side(without_marks),
}
