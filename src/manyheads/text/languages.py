"""Language codes and their English names."""

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
    """Return a language code without script or country, in lower case: "de" for "de_DE"."""
    return re.split("[-_]", code)[0].lower()


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if the name is unknown."""
    return NAMES.get(base(code), code)


def same_language(asked: str, known: list[str]) -> str | None:
    """Return the known code that matches: equal without case, an alias, or the code without country."""

    def one_form(code: str) -> str:
        code = code.lower().replace("_", "-")
        return ALIASES.get(code, code)

    wanted = one_form(asked)
    forms = [(one_form(code), code) for code in known]
    exact = [code for form, code in forms if form == wanted]
    wider = [code for form, code in forms if base(form) == form and form == base(asked)]
    return next(iter([*exact, *wider]), None)
