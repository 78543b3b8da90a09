"""Quote commands that a user copies into a terminal."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

_PLAIN_ON_WINDOWS = re.compile(r"[\w@+=:./\\-]+", re.ASCII)  # read alike by cmd and PowerShell


def command_line(*words: str | Path) -> str:
    """Return a command with its words quoted for the shell; a path that begins with - is written ./-..."""
    return " ".join(map(quote, words))


def quote(word: str | Path) -> str:
    """Return a word as the shell of this system reads it: sh, or cmd and PowerShell on Windows."""
    text = os.path.join(os.curdir, word) if isinstance(word, Path) and str(word).startswith("-") else str(word)
    if os.name != "nt":
        return shlex.quote(text)
    if _PLAIN_ON_WINDOWS.fullmatch(text):
        return text
    doubled = re.sub(r'(\\*)("|$)', r"\1\1\2", text)  # backslashes count only before a quotation mark
    return '"' + doubled.replace('"', '\\"') + '"'
