"""Commands to copy are quoted for the shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from bitext.shell import command_line, quote

WORDS = [
    "plain",
    "my run [1]",
    "it's",
    'a "b" c',
    "$HOME",
    "~",
    "a&b",
    "a;b",
    "*",
    "",
    "C:\\proj\\a b\\",
    "데이터 1",
    "a\nb",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_shell_reads_each_word_back(word: str) -> None:
    assert shlex.split(command_line("manyheads", "train", word)) == ["manyheads", "train", word]


def test_a_path_is_no_option() -> None:
    assert command_line("manyheads", "-q", Path("-run")) == "manyheads -q ./-run"


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("runs\\a", "runs\\a"),
        ("my run [1]", '"my run [1]"'),
        ("C:\\my run\\", '"C:\\my run\\\\"'),
        ('data.train=["a"]', '"data.train=[\\"a\\"]"'),
        ("a&b", '"a&b"'),
        ("", '""'),
    ],
)
def test_windows_reads_each_word_back(word: str, quoted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        assert quote(word) == quoted
