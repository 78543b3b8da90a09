"""Compare the output of a program with that on a page; figures depend on the machine and on the trained model.

The outlines are compared: numbers and drawings may differ, and of a few lines only the beginning counts (`VARIES`).
The remaining lines must have the same order; the program may print more lines between them (progress).
"""

from __future__ import annotations

import json
import re
from typing import Any

NUMBER = re.compile(r"[+-]?\d[\d,.:]*")
# Lines of a drawing: block characters, pieces of text, letters below it, numbers of its columns.
DRAWING = re.compile(r"[│┌└├█▓▒░▁·]|^ +\S( +\S)*$|^ +\d+( +\d+)+$")
# The beginnings of lines whose rest depends on the text, on the model, or on the machine.
VARIES = re.compile(
    r"en(?= )"  # the translations of the demo
    r"|(?=(?:positive|negative) #$)"  # the label of a classifier
    r"|\d+ checks"  # then the number of findings
    r"|text train # pairs read, # kept"  # then the reasons why others were left out
    r"|about #(?= \w+ on )"  # the time that `init` calculates
    r"|# minutes on "  # then "this core" or "these cores"
    r"|time # s an update here, about #"  # then seconds, minutes or hours
    r"|valid, \w+: # characters train does not have, # times:"
    r"|Stopped after # steps:"  # then the reason
    r"|mean of the last # checkpoints: loss #"  # then whether the loss is lower
    r"|step # valid loss # perplexity # BLEU # chrF #"  # then whether the score is the best so far
    r"|as in models/\w+: d_model = #"  # then the other sizes
    r"|int# costs"  # then the cost, or "nothing"
    r"|verdict:"  # then the meaning of the figures
    r"|(?=compared on # \w+ \()"  # printed only where Node.js is installed
    r"|\w+, \w+: longest lines:"
    r"|- .*(?=: no, see [\w, -]+$)"  # a check: whether it holds depends on the text
)


def outline(text: str) -> list[str]:
    """Return the lines of a text without the pieces that may differ."""
    found: list[str] = []
    for line in text.split("\n"):
        reduced = "▒" if DRAWING.search(line) and "nrefs" not in line else without_figures(line)
        if reduced and not (reduced in ("▒", "verdict:") and found[-1:] == [reduced]):
            found.append(reduced)
    return found


def without_figures(line: str) -> str:
    """Return a line with `#` for its numbers except that of checks, or its beginning by `VARIES`."""
    line = re.sub(r"\S*/(?=manyheads )", "", line)  # the path of the program
    plain = " ".join((line if re.match(r"\d+ checks", line) else NUMBER.sub("#", line)).split())
    varies = VARIES.match(plain)
    return varies[0] if varies else plain


def missing(shown: str, printed: str) -> list[str]:
    """Return the lines of the outline that a page shows and the program does not print in that order."""
    remaining = iter(outline(printed))
    return [line for line in outline(shown) if line not in remaining]


def keys(document: Any) -> Any:
    """Return the structure of a JSON document: the keys of objects, and the first entry of lists."""
    if isinstance(document, dict):
        return {name: keys(value) for name, value in document.items()}
    if isinstance(document, list):
        return [keys(document[0])] if document else []
    return None


def same_keys(shown: str, printed: str) -> bool:
    """Return whether two JSON documents have the same structure; tiny models of tests may get warnings."""
    ours, theirs = keys(json.loads(shown)), keys(json.loads(printed))
    if isinstance(theirs, dict) and "warnings" not in ours:
        theirs.pop("warnings", None)
    return bool(ours == theirs)
