"""Make up text that a translator must copy: numbers, addresses, emoji, inline tags and fields such as {name}."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from bitext.literals import literal_fields, literal_kinds

# Pictographs that have been in Unicode since version 9: (first code point, number of them).
_EMOJI = ((0x1F300, 0x21), (0x1F330, 0x50), (0x1F400, 0xFE), (0x1F600, 0x50), (0x1F680, 0x46), (0x2600, 0x14))
_NUMBERS = 0.6  # least share of numbers; the kinds of the other texts, numbers among them, are equally likely
_TAGS = ("b", "i", "u", "em", "strong", "span", "a", "g", "x")
# Letters of some scripts: first and last code point.
_SCRIPTS = (
    (0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x627, 0x64A), (0x905, 0x939), (0xE01, 0xE2E),
    (0x10D0, 0x10F0), (0x3041, 0x3093), (0x4E00, 0x9FA0), (0xAC00, 0xD7A3),
)  # fmt: skip
_TO_FILL = re.compile("NAME|UPPER|DIGIT")
_MARKS = (".", "...", "-", "?", "!", "!?", "*", "()", "/", ":", ";", "…", "* * *", "---")
_TOP_LEVEL = ("org", "com", "net", "de", "io", "co.uk", "info", "eu", "test", "example")


def _make_number(rng: Random) -> str:
    """Make up a number: a count, an amount, a time, a date or a version."""
    whole = rng.randrange(10 ** rng.randint(1, 6))
    forms = (
        f"{whole}",
        f"{whole}",
        f"{rng.randint(1900, 2099)}",
        f"{rng.randrange(1000)}.{rng.randrange(100):02}",
        f"{rng.randrange(24):02}:{rng.randrange(60):02}",
        f"{rng.randrange(101)}%",
        f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.{rng.randint(1950, 2049)}",
        f"+{rng.randint(1, 99)} {rng.randrange(10**3, 10**4)} {rng.randrange(10**5, 10**6)}",
        f"v{rng.randrange(20)}.{rng.randrange(20)}.{rng.randrange(20)}",
    )
    return rng.choice(forms)


def _make_word(rng: Random, most: int = 9) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, most)))


def _make_address(rng: Random) -> str:
    """Make up a web address or, one time in four, an e-mail address."""
    host = f"{_make_word(rng)}.{rng.choice(_TOP_LEVEL)}"
    if rng.random() < 0.25:
        return f"{_make_word(rng)}{rng.choice(('', '.', '_', str(rng.randrange(100))))}{_make_word(rng, 5)}@{host}"
    start = rng.choice(("https://", "https://www.", "http://", "www."))
    path = "".join(f"/{_make_word(rng)}" for _ in range(rng.randrange(3)))
    endings = ("", "/", ".html", f"?{_make_word(rng, 3)}={rng.randrange(100)}", f"#{_make_word(rng, 5)}")
    return f"{start}{host}{path or '/'}{rng.choice(endings)}" if path else f"{start}{host}"


def _make_emoji(rng: Random) -> str:
    total = sum(count for _, count in _EMOJI)

    def draw() -> str:
        number = rng.randrange(total)
        for first, count in _EMOJI:
            if number < count:
                return chr(first + number)
            number -= count
        raise AssertionError

    return "".join(draw() for _ in range(rng.choice((1, 1, 1, 2, 3))))


def _make_field(rng: Random) -> str:
    """Make up a field of a format of literals.toml, such as {name}, %s or $1."""

    def fill(part: re.Match[str]) -> str:
        if part[0] == "DIGIT":
            return str(rng.randint(1, 9))
        field = rng.choice(literal_fields())
        return field.upper() if part[0] == "UPPER" else field

    form = rng.choice([form for kind in literal_kinds() for form in kind.forms])
    return _TO_FILL.sub(fill, form)


def make_tag(rng: Random) -> tuple[str, str]:
    """Make up an inline tag: its start and its end."""
    name = rng.choice(_TAGS)
    attribute = f' id="{rng.randrange(100)}"' if name in ("span", "a", "g", "x") else ""
    return f"<{name}{attribute}>", f"</{name}>"


def other_scripts(texts: Iterable[str]) -> list[tuple[int, int]]:
    """Return the scripts without a letter in these texts: first and last code point."""
    letters = {ord(letter) for letter in set().union(*map(set, texts))}
    return [(first, last) for first, last in _SCRIPTS if not any(first <= letter <= last for letter in letters)]


def _make_foreign(rng: Random, scripts: Sequence[tuple[int, int]]) -> str:
    first, last = rng.choice(scripts)
    words = (
        "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 6))) for _ in range(rng.randint(1, 2))
    )
    return " ".join(words)


# Kinds of text that is copied unchanged, each with the function that makes it up.
COPIES: Mapping[str, Callable[[Random], str]] = {
    "numbers": _make_number,
    "URLs": _make_address,
    "emoji": _make_emoji,
    "placeholders": _make_field,  # their name in the report of a challenge
}


def make_copy(rng: Random, scripts: Sequence[tuple[int, int]] = (), *, alone: bool = False) -> str:
    """Make up a text to be copied, of a random kind; words of `scripts` that the text lacks are copied, too.

    A text that will be `alone` on its line may consist of punctuation marks.
    """
    if rng.random() < _NUMBERS:
        return _make_number(rng)
    kinds = [*COPIES.values()]
    if scripts:
        kinds.append(lambda rng: _make_foreign(rng, scripts))
    if alone:
        kinds.append(lambda rng: rng.choice(_MARKS))
    return rng.choice(kinds)(rng)
