"""Recognise which of two languages a line is in, by its script or by frequent words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

__all__ = ["WORD", "Side", "Tell", "likeness", "teller"]

Side = Literal["source", "target"]
Tell = Callable[[str], Side | None]  # which of the two languages a line looks like, None if neither

WORD = re.compile(r"[^\W\d_]+")
SCRIPTS = {
    "hangul": re.compile("[\u1100-\u11ff\u3130-\u318f가-힣]"),
    "kana": re.compile("[\u3040-\u30ff]"),
    "han": re.compile("[\u4e00-\u9fff]"),
    "cyrillic": re.compile("[\u0400-\u04ff]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "thai": re.compile("[\u0e00-\u0e7f]"),
    "devanagari": re.compile("[\u0900-\u097f]"),
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}
SCRIPTS_OF = {
    "ko": ("hangul",), "ja": ("kana", "han"), "zh": ("han",), "ru": ("cyrillic",), "uk": ("cyrillic",),
    "bg": ("cyrillic",), "be": ("cyrillic",), "mk": ("cyrillic",), "el": ("greek",), "ar": ("arabic",),
    "fa": ("arabic",), "ur": ("arabic",), "he": ("hebrew",), "th": ("thai",), "hi": ("devanagari",),
    "mr": ("devanagari",), "ne": ("devanagari",),
}  # fmt: skip
# Frequent words of languages in Latin letters; a word that two of a pair share does not count for either.
FREQUENT = {
    "cs": "a se na je v že to s z do o ve by jsem ale jako pro jsou",
    "da": "og i at det en den til er som på de med der af for ikke har et",
    "de": "der die und in den das von zu mit sich des auf für ist im dem nicht ein eine er sie es ich einen einem "
    "an am was war so wie aus bei nach",
    "en": "the of and to in a is that for it as was with be by on not he his are this at from you she an of",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más",
    "fi": "ja on ei se että oli hän ovat mutta tai kun niin myös joka",
    "fr": "de la le et les des en un du une que est pour qui dans par il sur au pas ne elle je",
    "hu": "a az és hogy nem is egy ez meg csak volt de van",
    "it": "di e il la che in un a per è una sono con non del si da le dei i ha",
    "nl": "de van het een en in te dat op is voor met zijn niet aan er die om hij",
    "pl": "i w na z się nie do to że o jest jak po za od co ale",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as",
    "ro": "de și în la a cu pe că nu o un din care este mai să pentru",
    "sv": "och i att det som en på är av för med den till inte har de om ett",
    "tr": "ve bir bu da de için ile çok ne ben o mi var daha",
}
MOSTLY = 0.5  # of a line's letters in a script, from where on the line is in that script
AT_LEAST = 2  # frequent words of one language, and none of the other, from where on a line is in that language


def teller(source: str, target: str) -> Tell | None:
    """Return a function that tells two languages apart (codes such as de, ko or pt-BR); None for unknown ones."""
    codes = [code.replace("_", "-").partition("-")[0].lower() for code in (source, target)]
    if codes[0] == codes[1]:
        return None
    scripts = [SCRIPTS_OF.get(code, ("latin",) if code in FREQUENT else ()) for code in codes]
    if not all(scripts):
        return None
    if not set(scripts[0]) & set(scripts[1]):
        return by_script(*scripts)
    if all(code in FREQUENT for code in codes):
        return by_words(*(FREQUENT[code].split() for code in codes))
    return None


def by_script(source: Iterable[str], target: Iterable[str]) -> Tell:
    """Return a function that tells languages apart by their letters."""
    own, other = (tuple(SCRIPTS[name] for name in names) for names in (source, target))

    def tell(text: str) -> Side | None:
        counts = [sum(len(script.findall(text)) for script in scripts) for scripts in (own, other)]
        letters = sum(map(str.isalpha, text))
        if letters < AT_LEAST or max(counts) <= MOSTLY * letters:
            return None
        return "source" if counts[0] > counts[1] else "target"

    return tell


def by_words(source: Iterable[str], target: Iterable[str]) -> Tell:
    """Return a function that tells languages apart by frequent words."""
    own, other = set(source), set(target)
    own, other = own - other, other - own

    def tell(text: str) -> Side | None:
        words = WORD.findall(text.casefold())
        counts = sum(word in own for word in words), sum(word in other for word in words)
        if min(counts) > 0 or max(counts) < AT_LEAST:
            return None
        return "source" if counts[0] else "target"

    return tell


def likeness(words: Mapping[str, int], known: Mapping[str, int]) -> float:
    """Return the share of running words that are known, 0 to 1."""
    total = sum(words.values())
    return sum(count for word, count in words.items() if word in known) / total if total else 0.0
