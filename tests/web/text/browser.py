"""The JavaScript of the browser engine in Node.js, and texts on which it is compared with Python."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bitext.letters import has_letters, has_text
from bitext.literals import layout_kinds, literal_kinds
from bitext.unicode import known
from manyheads.data.builtin import builtin_pairs
from manyheads.web.scripts import WEB

DRIVER = Path(__file__).with_name("driver.mjs")
LITERALS, LAYOUT = ([kind.for_page() for kind in kinds] for kinds in (literal_kinds(), layout_kinds()))


class Browser:
    """Call functions of web/text and web/translation in a process of Node.js."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def call(self, function: str, *arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"function": function, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]


def node() -> str:
    """Return the path of Node.js; skip the test if it is missing or too old."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("needs Node 20 or newer")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < 20:
        pytest.skip(f"needs Node 20 or newer, not {version.strip()}")
    return program


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Node.js; skip the test as `node` does."""
    command = [node(), "--no-warnings", str(DRIVER), (WEB / "text").as_uri()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Browser(process)
        assert process.stdin is not None
        process.stdin.close()


def joined_surrogates(text: str) -> str:
    """Return the text with surrogate pairs as one character, as JavaScript reads them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


# Names of the properties in the order of the driver, and the functions of Python.
PROPERTIES = {
    "assigned": lambda c: unicodedata.category(c) != "Cn",
    "text": has_text,
    "letter": has_letters,
    "alphanumeric": str.isalnum,
    "digit": str.isdigit,
    "decimal": str.isdecimal,
    "lower case": str.islower,
    "upper case": str.isupper,
    "white": str.isspace,
    "combining": lambda c: unicodedata.combining(c) != 0,
    "wide": lambda c: unicodedata.east_asian_width(c) in "WF" and not "\uac00" <= c <= "\ud7a3",
    "upper": str.upper,
    "lower": str.lower,
    "capitalize": str.capitalize,
}


@cache
def stable_characters(step: int = 16) -> tuple[list[str], dict[str, list[str]]]:
    """Return the characters on which both programs agree, and for each property those on which they differ.

    Of ideographs, Hangul and the like, every `step`-th is compared. Python and Node.js have different versions of
    Unicode; characters that only one of them knows are left out.
    """
    codes = (*range(0xD800), *range(0xE000, 0xF0010))  # without surrogates, and without most of private use
    chosen = [code for code in codes if code < 0x3100 or 0x1F000 <= code < 0x1FB00 or code % step == 0]
    assigned = [chr(code) for code in chosen if unicodedata.category(chr(code)) != "Cn"]
    compared = [c for c in assigned if known(c) != "\ue000"]  # without those newer than Unicode 14
    with open_browser() as browser:
        rows = browser.call("properties", [ord(c) for c in compared])
    stable: list[str] = []
    different: dict[str, list[str]] = {name: [] for name in PROPERTIES}
    for character, row in zip(compared, rows, strict=True):
        if not row[0]:
            continue
        wrong = [
            name for (name, read), value in zip(PROPERTIES.items(), row, strict=True) if read(character) != value
        ]
        for name in wrong:
            different[name].append(character)
        if not wrong:
            stable.append(character)
    return stable, different


LANGUAGES = [
    "Où est l'ÉCOLE naïve? « Oui ! » dit-il. façade — “quotes” … ©",
    "안녕하세요 세계, 오늘 날씨가 좋네요. ㅋㅋㅋ 2020. 5. 3. 제주에서. https://a.b/c?x=1에서 봐요!",
    "「はい」と言った。彼は来た！日本語の文、漢字。ｶﾀｶﾅ ．５",
    "我们去吧。你好！今天，天气很好；是吗？“是的。”他说。",
    "สวัสดีชาวโลก ไทย हिन्दी में। क्या हाल है? বাংলা।",
    "עברית: שלום! العربية؟ نعم، شكرا؛ اردو۔",
    "Грузинский: ქართული ᲥᲐᲠᲗᲣᲚᲘ. Ελληνικά ΟΔΟΣ ΟΔΌΣ ΣΑΣ. Ἀχιλλεὺς ᾳ ᾼ",
    "İstanbul ISPARTA ıi ǆ ǅ ŉ ﬁn ßtraße ẞ",
    "Er kam am 3. Mai um 5 p.m. mit Dr. J. S. Bach, z.B. bzw. u.s.w. Das kostet 1.234,5 Mrd. Euro.",
    "1. Ein Hund. a. b.",
    "No. 5 is fine. He said no. U.S. officials vs. Smith et al. left.",
    "'Ok.' (Yes.) [No.] \"Hm!\" Why?! Really… yes.",
    "THIS IS LOUD! SO IS THIS. ÄÖÜ 1A",
    "Mail me@x.org or <b>go</b> {name} ${x} %(a)s %1$s %d $1 __NAME__ @you 😀👍🏽!",
    "see https://en.wikipedia.org/wiki/X_(y). www.test.com/a, and (www.b.de)!",
    "▁under▁score ▁ a▁",
    ">>fra<< hello <unk> </s> <0xEA>",
    "\u1112\u1161\u11ab\u1100\u1173\u11af NFD cafe\u0301 a\u0f73\u0f75\u0f81\u0345\u0301",
    "👩‍👩‍👧 🇰🇷 emoji ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣",
    "zero\x00width\u200b\u200d\ufeffjoin\x07\x1b[0m\x85 \x1c\x1d\x1e\x1f",
    "  two  blanks\tand\ttabs \n and lines\r\n\r\n more\u2028line\u2029sep\x0bvt\x0c",
    "",
    " ",
    "\n",
    "a",
    "x" * 500,
    "안" * 300,
    "don't can't 1,234.56 $5% a_b a##b Ġ I'll we've they're it's he'd I'm do not",
    "\ud83d lone \ude00 surrogates \ud800\ud800 \udfff",
    "\U000f0000▁\U000f0001",
    "a, b; c: d – e — f - g، h؛ i、j，k；l：m",
    "．５ ．a ?» x. » y !» ( . ) ... . . .",
    "word " * 60,
    "A.B.C. Dr",
    "a\u0378b \U0010ffff\ue000",
    "haus  baum   hund\t katze\n\nvogel",
    "ｶﾞｷﾞﾊﾟ ガギパ ﾊﾞ ①½ﬁ Ⅷ ㍿ ㎏ Å",
    "Ok " + "A." * 20 + " Next. Ok " + "A." * 21 + " Next.",
    "Ok. (((((((No. Ok. ((((((((No. Ok. (((((((((No.",
    "Oui ! »Non. Oui ! » Non.",
    "Ask foo@bar or @you, x@@y",
    f"<a {'b' * 199}>Ja <a {'b' * 200}>nein <img src='dog on a big chair.png'>",
    "x" * 45 + ". Yes. " + "y" * 50 + ".z. Yes",
]


@cache
def quick_texts() -> list[str]:
    """Return some hundred texts of several scripts, and random texts."""
    pairs = [
        *builtin_pairs("de-en", "valid", source="de", target="en")[:20],
        *builtin_pairs("ko-en", "valid", source="ko", target="en")[:20],
    ]
    sentences = [text for pair in pairs for text in (pair.source, pair.target)]
    return [*map(joined_surrogates, LANGUAGES), *sentences, *random_texts(120, seed=1)]


def random_texts(count: int, seed: int) -> list[str]:
    """Return random strings of characters, of one script, of words of `LANGUAGES`, white space and punctuation."""
    rng = random.Random(seed)
    stable, _ = stable_characters()
    by_block: dict[int, list[str]] = {}
    for character in stable:
        by_block.setdefault(ord(character) >> 7, []).append(character)
    blocks = [by_block[block] for block in sorted(by_block)]
    scripts = [block for block in blocks if ord(block[0]) < 0x3100 or 0x1F000 <= ord(block[0]) < 0x1FB00]
    words = [word for text in LANGUAGES for word in text.split(" ")]
    marks = list(
        " \t\n\r\u3000\xa0.!?…。！？,;:、،()[]{}<>«»“”\"'-–—_@#$%&*/▁Σσς\u0301\u0308\u0323\u200d\ufe0f09AaZz가힣"
    )
    surrogates = [chr(code) for code in (0xD800, 0xDBFF, 0xDC00, 0xDFFF)]

    def part() -> str:
        kind = rng.random()
        if kind < 0.25:
            return "".join(rng.choices(rng.choice(scripts), k=rng.randint(1, 8)))
        if kind < 0.35:
            return "".join(rng.choices(rng.choice(blocks), k=rng.randint(1, 4)))
        if kind < 0.55:
            return rng.choice(words)
        if kind < 0.57:
            return rng.choice(surrogates)
        return "".join(rng.choices(marks, k=rng.randint(1, 3)))

    return [joined_surrogates("".join(part() for _ in range(rng.randint(0, 14)))) for _ in range(count)]


def random_ids(size: int, count: int, seed: int, common: Sequence[int] = ()) -> list[list[int]]:
    """Return rows of random token ids of a vocabulary; half of them are `common` ids if any are given."""
    rng = random.Random(seed)

    def draw() -> int:
        return rng.choice(common) if common and rng.random() < 0.5 else rng.randrange(size)

    return [[draw() for _ in range(rng.randint(0, 12))] for _ in range(count)]


def first_difference(
    inputs: Sequence[Any], python_outputs: Sequence[Any], javascript_outputs: Sequence[Any]
) -> str:
    """Describe the first input whose outputs differ, "" if all are equal."""
    assert len(inputs) == len(python_outputs) == len(javascript_outputs)
    for text, python, javascript in zip(inputs, python_outputs, javascript_outputs, strict=True):
        if python != javascript:
            return f"{text!r}: Python {python!r}, JavaScript {javascript!r}"
    return ""
