"""Know the plural forms of languages: the rules of gettext and the categories of Unicode, from plurals.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from gettext import c2py
from pathlib import Path

from bitext.languages import base_language, normal_form

MAX_FORMS = 10
_NUMBERS = range(1_000)  # by which the forms of a rule are found


@cache
def plural_rule(language: str) -> tuple[str, str]:
    """Return the plural rule of a language for gettext, and its plural categories of Unicode, divided by blanks."""
    table = tomllib.loads(Path(__file__).with_name("plurals.toml").read_text(encoding="utf-8"))
    rules = {code.replace("_", "-"): rule for codes, rule in table.items() for code in codes.split("-")}
    rule = rules.get(normal_form(language), rules.get(base_language(language), rules["others"]))
    return rule["rule"], rule["categories"]


def numbers_of_forms(rule: str) -> list[list[int]]:
    """Return the numbers below 1,000 of each plural form of a rule of gettext.

    Raises:
        ValueError: it is no rule.
    """
    form_of = c2py(rule)
    try:
        forms = [form_of(number) for number in _NUMBERS]
    except ZeroDivisionError as error:
        raise ValueError(str(error)) from error
    if not 0 <= min(forms) <= max(forms) < MAX_FORMS:
        raise ValueError(f"more than {MAX_FORMS} forms")
    return [[number for number in _NUMBERS if forms[number] == form] for form in range(max(forms) + 1)]
