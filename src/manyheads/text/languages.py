"""Codes of languages and their English names."""

from __future__ import annotations

import re

__all__ = ["language_name", "same_language"]

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
# What LibreTranslate's clients may say, and what it means.
ALIASES = {"zh": "zh-hans", "zt": "zh-hant", "pb": "pt-br"}


def base(code: str) -> str:
    """The language without script or country, in small letters: "de" of "de_DE"."""
    return re.split("[-_]", code)[0].lower()


def language_name(code: str) -> str:
    """Its English name; the code where we know none."""
    return NAMES.get(base(code), code)


def same_language(asked: str, known: list[str]) -> str | None:
    """Which of the known codes is meant: the same in whatever case, an alias, or the one without country."""

    def one_form(code: str) -> str:
        code = code.lower().replace("_", "-")
        return ALIASES.get(code, code)

    wanted = one_form(asked)
    forms = [(one_form(code), code) for code in known]
    exact = [code for form, code in forms if form == wanted]
    wider = [code for form, code in forms if base(form) == form and form == base(asked)]
    return next(iter([*exact, *wider]), None)
