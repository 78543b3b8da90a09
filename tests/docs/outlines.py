"""Whether a program prints what a page shows, where what it prints depends on what was trained.

Compared is the outline: numbers may be others, what is drawn may be drawn otherwise, and of a few lines only the
beginning counts (`VARIES`). What is left must come in the same order; the program may print more between (lines of
progress).
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["keys", "missing", "outline", "same_keys"]

NUMBER = re.compile(r"[+-]?\d[\d,.:]*")
# Pictures of characters, pieces of text, letters below a picture, numbers of its columns.
DRAWN = re.compile(r"[│┌└├█▓▒░▁·]|^ +\S( +\S)*$|^ +\d+( +\d+)+$")
# What stays of lines whose rest depends on the text, on what a model has learned, or on the machine.
VARIES = re.compile(
    r"en(?= )"  # the translations of the demo
    r"|(?=(?:positive|negative) #$)"  # the label of a classifier
    r"|\d+ checks"  # and what they have found
    r"|text train # pairs read, # kept"  # and why others were not
    r"|about #(?= \w+ on )"  # the time that `init` calculates
    r"|# minutes on "  # this core, these cores
    r"|time # s an update here, about #"  # of seconds, minutes or hours
    r"|valid, \w+: # characters train does not have, # times:"
    r"|Stopped after # steps:"  # and why
    r"|mean of the last # checkpoints: loss #"  # and whether that is better
    r"|step # valid loss # perplexity # BLEU # chrF #"  # the same
    r"|as in models/\w+: d_model = #"  # and what else is taken
    r"|int# costs"  # how much, or nothing
    r"|verdict:"  # and what the figures mean
    r"|(?=compared on # \w+ \()"  # where there is Node.js
    r"|\w+, \w+: longest lines:"
)


def outline(text: str) -> list[str]:
    """The lines of a text, without what may differ."""
    found: list[str] = []
    for line in text.split("\n"):
        kept = "▒" if DRAWN.search(line) and "nrefs" not in line else without_figures(line)
        if kept and not (kept in ("▒", "verdict:") and found[-1:] == [kept]):
            found.append(kept)
    return found


def without_figures(line: str) -> str:
    """A line with `#` for its numbers but that of checks, or what stays of it."""
    line = re.sub(r"\S*/(?=manyheads )", "", line)  # where the program lies
    plain = " ".join((line if re.match(r"\d+ checks", line) else NUMBER.sub("#", line)).split())
    varies = VARIES.match(plain)
    return varies[0] if varies else plain


def missing(shown: str, printed: str) -> list[str]:
    """The lines of the outline that a page shows and the program does not print there."""
    there = iter(outline(printed))
    return [line for line in outline(shown) if line not in there]


def keys(document: Any) -> Any:
    """A JSON document without its values: the names of objects, and of lists the first entry."""
    if isinstance(document, dict):
        return {name: keys(value) for name, value in document.items()}
    if isinstance(document, list):
        return [keys(document[0])] if document else []
    return None


def same_keys(shown: str, printed: str) -> bool:
    """Whether two JSON documents have the same shape."""
    return bool(keys(json.loads(shown)) == keys(json.loads(printed)))
