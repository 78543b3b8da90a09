"""Read language codes: normal form, base language, script, marks, names, and the known code that another one means.

Codes of BCP 47 (zh-Hant-TW), of ISO 639 with two or three letters (de, deu, ger), of FLORES and Tatoeba (zho_Hans,
cmn_Hans), of gettext (sr@latin) and of LibreTranslate (zt) are read. ``langcodes`` has the tables of IANA and
Unicode; it is imported only for codes that are not in `_ENGLISH_NAMES`, or where a script is asked for: that takes
50 ms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from bitext.unicode import on_known

_ENGLISH_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
# Codes that langcodes does not know, in lower case with hyphens: of LibreTranslate, Windows and FLORES-101, and
# codes of countries that ISO 639 assigns to no language.
_SPELLINGS = {
    "zt": "zh-hant", "pb": "pt-br", "zh-chs": "zh-hans", "zh-cht": "zh-hant", "zho-simpl": "zh-hans",
    "zho-trad": "zh-hant", "zh-simpl": "zh-hans", "zh-trad": "zh-hant", "cn": "zh-cn", "jp": "ja", "cz": "cs",
}  # fmt: skip
_LIBRETRANSLATE = {"zh-Hant": "zt", "pt-BR": "pb"}
_PREFERRED = {"no": "nb", "fil": "tl"}  # the codes of LibreTranslate and spaCy
_PLACEHOLDERS = frozenset({"src", "tgt", "trg"})  # in names of files; assigned to rare languages
_MODIFIERS = {"latin": "latn", "cyrillic": "cyrl", "devanagari": "deva", "arabic": "arab"}  # of gettext
_NO_REGION = "XX"  # mBART writes en_XX
_LIKELY_REGIONS = {"pt": "PT"}  # for LibreTranslate, pt is not pb; Unicode says Brazil
_SAME_SCRIPT = {"Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan", "Aran": "Arab", "Latf": "Latn"}
_HAN = frozenset({"Hans", "Hant", "Hani", "Bopo"})
_EAST_ASIAN = _HAN | {"Jpan"}  # scripts without blanks between sentences
_NO_BLANKS = _EAST_ASIAN | {"Thai", "Laoo", "Khmr", "Mymr", "Tibt"}  # scripts without blanks between words
_RIGHT_TO_LEFT = {"Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"}
# Full stop of a language or script that has another one than "."; "" if it has none.
_FULL_STOPS = {
    **dict.fromkeys(_EAST_ASIAN, "。"), "ur": "۔", "mr": ".", "Deva": "।", "Beng": "।", "Guru": "।", "Orya": "।",
    "Armn": "։", "Ethi": "።", "Khmr": "។", "Mymr": "။", "Tibt": "།", "Thai": "", "Laoo": "",
}  # fmt: skip
# Marks at the end of a sentence or clause, where a script or language has other ones than "?", "...", and so on.
_WIDE_MARKS = {"?": "？", "!": "！", ":": "：", ";": "；", ",": "，", "…": "……"}
_END_MARKS = {
    **dict.fromkeys(_HAN, _WIDE_MARKS), "Jpan": _WIDE_MARKS | {",": "、", "…": "…"},
    "Arab": {"?": "؟", ";": "؛", ",": "،"}, "Grek": {"?": ";", ";": "·"},
    "fr": {mark: f"\u00a0{mark}" for mark in "?!:;"},
}  # fmt: skip
# Marks that end a sentence, as the content of a class of characters: Sentence_Terminal of Unicode 17, Basic
# Multilingual Plane, and the ellipsis.
SENTENCE_ENDS = (
    "!.?…\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d-\u1b7f"
    "\u1c3b\u1c3c\u1c7e\u1c7f\u2024\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u2e60\u2e61\u3002\ua4ff"
    "\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16"
    "\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
)
_MARKS = {chr(code): unicodedata.combining(chr(code)) for code in range(0x300, 0x370)}
_ABOVE = "".join(mark for mark, place in _MARKS.items() if place == 230)
_BELOW = "".join(mark for mark, place in _MARKS.items() if place not in (0, 230))
# What is replaced before a text is lower-cased, and before it is capitalised (SpecialCasing of Unicode).
_Rules = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
_DOTLESS_I: _Rules = ((f"I([{_BELOW}]*)\u0307", r"i\1"), ("İ", "i"), ("I", "ı")), (("i", "İ"),)
_DOT_BELOW_ACCENT: _Rules = (
    (("Ì", "I\u0300"), ("Í", "I\u0301"), ("Ĩ", "I\u0303"), (f"([IJĮ])(?=[{_BELOW}]*[{_ABOVE}])", "\\1\u0307")),
    ((f"([ijįɉɨʝḭị][{_BELOW}]*)\u0307", r"\1"),),
)
_CASE_RULES = {**dict.fromkeys(("az", "crh", "gag", "tr"), _DOTLESS_I), "lt": _DOT_BELOW_ACCENT}
_SHORT_NAMES = {"Hans": "Simplified", "Hant": "Traditional", "TW": "Taiwan", "419": "Latin America"}
_LONGEST_CODE = 40  # characters


@dataclass(frozen=True)
class _Language:
    """Meaning of a language code.

    Attributes:
        base: code of the language alone, of two letters if there is one; of an unknown code its first part.
        script: the script that the code states, "" if none; four letters (ISO 15924).
        region: the country or area that the code states, "" if none.
    """

    base: str
    script: str = ""
    region: str = ""


def _read_code(code: str) -> _Language:
    """Return the meaning of a language code in any spelling; an unknown one means itself."""
    return _read(code[:_LONGEST_CODE])


@lru_cache(4096)
def _read(code: str) -> _Language:
    text, _, modifier = code.strip().lower().partition("@")
    text = text.partition(".")[0].replace("_", "-")  # de_DE.UTF-8
    if modifier in _MODIFIERS:
        text = text.replace("-", f"-{_MODIFIERS[modifier]}-") if "-" in text else f"{text}-{_MODIFIERS[modifier]}"
    text = _SPELLINGS.get(text, text)
    base = text.partition("-")[0]
    if text in _ENGLISH_NAMES or base in _PLACEHOLDERS:
        return _Language(base)
    from langcodes.data_dicts import LANGUAGE_REPLACEMENTS, NORMALIZED_MACROLANGUAGES
    from langcodes.tag_parser import LanguageTagError, parse_tag

    # Other functions of langcodes keep each code for ever, and clients of a server may send many.
    try:
        parts: dict[str, str] = dict(parse_tag(LANGUAGE_REPLACEMENTS.get(text, text)))
        base = parts.pop("language", base)
        extended = f"{base}-{parts.pop('extlang', '')}"  # zh-yue
        parts = dict(parse_tag(LANGUAGE_REPLACEMENTS.get(extended, LANGUAGE_REPLACEMENTS.get(base, base)))) | parts
    except LanguageTagError:
        return _Language(base)
    base = NORMALIZED_MACROLANGUAGES.get(parts["language"], parts["language"])
    script, region = parts.get("script", ""), parts.get("territory", "")
    if base == "zh" and script == "Hani":
        script = ""
    return _Language(
        _PREFERRED.get(base, base), _SAME_SCRIPT.get(script, script), "" if region == _NO_REGION else region
    )


@lru_cache(4096)
def _likely(language: _Language) -> _Language:
    """Return a language with the script and region that it most likely has; without them if that is not known."""
    from langcodes.data_dicts import LIKELY_SUBTAGS

    base, script, region = language.base, language.script, language.region
    for stated in ((base, script, region), (base, script), (base, region), (base,)):
        found = LIKELY_SUBTAGS.get("-".join(filter(None, stated)))
        if found:
            _, likely_script, likely_region = found.split("-")
            script = script or _SAME_SCRIPT.get(likely_script, likely_script)
            likely_region = _LIKELY_REGIONS.get(base, likely_region)
            return _Language(base, script, region or likely_region)
    return language


def base_language(code: str) -> str:
    """Return the code of a language without script or region: "de" for "deu_Latn", "zh" for "cmn"."""
    return _read_code(code).base


@lru_cache(4096)
def script_of(code: str) -> str:
    """Return the script that a code states, else the likely one, as ISO 15924 names it; "" if it is not known."""
    return _likely(_read_code(code)).script


def normal_form(code: str) -> str:
    """Return the BCP 47 tag of a code: "zh-Hans" for "cmn_Hans", "de" for "deu_Latn"; an unknown code unchanged."""
    language = _read_code(code)
    if not language.script and not language.region:
        return language.base or code
    usual = (
        language.base != "zh" and language.script == _likely(_Language(language.base, "", language.region)).script
    )
    return "-".join(filter(None, (language.base, "" if usual else language.script, language.region)))


def match_language(asked: str, known: Iterable[str]) -> str | None:
    """Return the known code that means the asked language in the same script, None if there is none.

    Of several, the code spelled alike is preferred, then the nearest region, then a code without region. A code
    without script means the likely one, so that neither zh nor zh-CN matches zh-Hant. No other language is matched:
    nn is not nb.
    """
    return _match(asked, tuple(known)) if len(asked) <= _LONGEST_CODE else None


@lru_cache(1024)
def _match(asked: str, known: tuple[str, ...]) -> str | None:
    spelled = {code.lower().replace("_", "-"): code for code in reversed(known) if code}
    exact = spelled.get(asked.lower().replace("_", "-"))
    if exact is not None:
        return exact
    wanted = _read_code(asked)
    same = [code for code in known if wanted.base and _read_code(code).base == wanted.base]
    same = [code for code in same if script_of(code) == _likely(wanted).script]
    return min(same, key=lambda code: _region_distance(wanted, _read_code(code)), default=None)


def _region_distance(asked: _Language, known: _Language) -> tuple[int, bool]:
    """Return the distance of the regions of two codes of a language, and whether the known one states a region."""
    from langcodes.language_distance import tuple_distance_cached

    triples = [(full.base, full.script, full.region) for full in (_likely(asked), _likely(known))]
    return (-1 if asked == known else tuple_distance_cached(*triples)), bool(known.region)


def libretranslate_code(code: str) -> str:
    """Return the code that LibreTranslate and Argos use for a language."""
    full = _likely(_read_code(code))
    names = (f"{full.base}-{full.script}", f"{full.base}-{_read_code(code).region}", full.base)
    return next((_LIBRETRANSLATE[name] for name in names if name in _LIBRETRANSLATE), full.base)


def has_blanks_between_words(code: str) -> bool:
    """Return whether a language is written with blanks between words; true for an unknown one."""
    return script_of(code) not in _NO_BLANKS


def is_right_to_left(code: str) -> bool:
    """Return whether a language is written from right to left; false for an unknown one."""
    return script_of(code) in _RIGHT_TO_LEFT


def sentence_separator(code: str) -> str:
    """Return the separator of two sentences: "" for Chinese and Japanese, else a blank."""
    return "" if script_of(code) in _EAST_ASIAN else " "


def full_stop(code: str) -> str:
    """Return the mark at the end of a sentence, "" for a language without one."""
    return _FULL_STOPS.get(base_language(code), _FULL_STOPS.get(script_of(code), "."))


def end_mark(kind: str, code: str) -> str:
    """Return the mark of a kind at the end of a sentence or clause, as a language writes it.

    Args:
        kind: one of ".?!:;," or "…".
        code: code of the language.
    """
    if kind == ".":
        return full_stop(code)
    marks = _END_MARKS.get(base_language(code), _END_MARKS.get(script_of(code), {}))
    return marks.get(kind, "..." if kind == "…" else kind)


@lru_cache(4096)
def case_rules(code: str) -> _Rules:
    """Return the letters that a language replaces before lower-casing, and before capitalising."""
    return _CASE_RULES.get(base_language(code), ((), ()))


def lower(text: str, code: str) -> str:
    """Return a text in lower case, as its language writes it: "I" is "ı" in Turkish."""
    for letters, new in case_rules(code)[0]:
        text = re.sub(letters, new, text)
    return on_known(str.lower, text)


def upper(text: str, code: str) -> str:
    """Return a text in capitals, as its language writes it: "i" is "İ" in Turkish."""
    for letters, new in case_rules(code)[1]:
        text = re.sub(letters, new, text)
    return on_known(str.upper, text)


def capitalize(text: str, code: str) -> str:
    """Return a text with its first letter as a capital and the rest in lower case, as its language writes it."""
    has_rules = any(case_rules(code))
    return upper(text[:1], code) + lower(text[1:], code) if has_rules else on_known(str.capitalize, text)


def bleu_language(code: str) -> str:
    """Return "zh", "ja" or "ko" for text that sacreBLEU splits by a tokenizer of that language, else ""."""
    return {**dict.fromkeys(_HAN, "zh"), "Jpan": "ja", "Kore": "ko"}.get(script_of(code), "")


def language_name(code: str) -> str:
    """Return the English name of a language, with a script or region that is not the usual one; else the code."""
    language = _read_code(code)
    base, region = language.base, language.region
    name = _ENGLISH_NAMES.get(base) or (base not in _PLACEHOLDERS and _registered_name("language", base))
    if not name:
        return code
    if not language.script and not region:
        return name
    script, details = _likely(language).script, []
    if base == "zh" or script != _likely(_Language(base)).script:
        details.append(_registered_name("script", script))
    if region and region != _likely(_Language(base, script)).region:
        details.append(_registered_name("region", region) or region)
    return f"{name} ({', '.join(filter(None, details))})" if any(details) else name


def language_names(codes: Sequence[str]) -> dict[str, str]:
    """Return the name of each language; codes of the same name have the code added."""
    names = {code: language_name(code) for code in codes}
    shared = [name for name in names.values() if list(names.values()).count(name) > 1]
    return {code: f"{name}, {code}" if name in shared else name for code, name in names.items()}


def _registered_name(kind: str, subtag: str) -> str:
    """Return the name of a language, script or region."""
    return _SHORT_NAMES.get(subtag) or _registry().get((kind, subtag), "")


@cache
def _registry() -> dict[tuple[str, str], str]:
    """Read the names in IANA's registry of language subtags, which langcodes holds."""
    from langcodes.registry_parser import parse_registry

    entries = [entry for entry in parse_registry() if "Subtag" in entry]
    return {(entry["Type"], entry["Subtag"]): re.split(r" \(|, ", entry["Description"][0])[0] for entry in entries}
