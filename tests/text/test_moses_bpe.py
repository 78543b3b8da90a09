"""Words of Moses are cut as by subword-nmt, and joined as by Argos Translate."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.data.builtin import builtin_pairs
from manyheads.errors import ConfigError, MissingExtraError, RunError
from manyheads.text.interface import growing_text
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.tokenizer import UNK, load_tokenizer
from manyheads.text.training import train_tokenizer

moses = pytest.importorskip("sacremoses")
learning, applying = (pytest.importorskip(f"subword_nmt.{name}") for name in ("learn_bpe", "apply_bpe"))
BPE = applying.BPE

ODD = ["", "x", "Anna-Lena's „Hut“ kostet 3,50 €!", "<b>fett</b> & [mehr] | …", "aaaaaaaaaaaa ana banana", "木 🌲"]
CONFIG = TokenizerConfig(kind="moses-bpe")


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [*ODD, *(pair.source for pair in builtin_pairs("de-en", "train", source="de", target="en"))][:1_000]


def moses_words(lines: list[str]) -> Iterator[list[str]]:
    normalizer, tokenizer = moses.MosesPunctNormalizer("de"), moses.MosesTokenizer("de")
    for line in lines:
        yield tokenizer.tokenize(normalizer.normalize(line))


@pytest.fixture(scope="module")
def merges(lines: list[str]) -> str:
    """Return merges of subword-nmt, learned from half of the lines."""
    text, codes = "\n".join(" ".join(words) for words in moses_words(lines[::2])), io.StringIO()
    learning.learn_bpe(io.StringIO(text), codes, 400, min_frequency=2)
    return codes.getvalue()


def symbols_of(merges: str, lines: list[str]) -> list[str]:
    """Return the pieces of the lines by subword-nmt."""
    bpe = BPE(io.StringIO(merges))
    return sorted({piece for words in moses_words(lines) for piece in bpe.segment_tokens(words)})


def without_header(merges: str) -> str:
    """Return merges as of version 0.1, in which the end of a word is a symbol of its own."""
    lines = merges.splitlines()[1:]
    return "".join(f"{line}\n" for line in [*(line for line in lines if "</w>" not in line), "n </w>", "e n</w>"])


@pytest.mark.parametrize("form", ["0.2", "0.1"])
def test_1000_lines_are_cut_as_by_subword_nmt(lines: list[str], merges: str, form: str) -> None:
    codes = merges if form == "0.2" else without_header(merges)
    bpe, tokenizer = BPE(io.StringIO(codes)), MosesBpeTokenizer(symbols_of(codes, lines), codes, "de")
    assert len(lines) == 1_000
    expected = [bpe.segment_tokens(words) for words in moses_words(lines)]
    assert [tokenizer.pieces(row) for row in tokenizer.encode(lines)] == expected
    assert sum(piece.endswith("@@") for row in expected for piece in row) > 1_000


def test_merges_of_fastbpe_have_counts_and_no_header(lines: list[str], merges: str) -> None:
    counted = "".join(f"{line} {9 - i % 9}\n" for i, line in enumerate(merges.splitlines()[1:]))
    symbols = symbols_of(merges, lines)
    expected = MosesBpeTokenizer(symbols, merges, "de").encode(lines[:99])
    assert MosesBpeTokenizer(symbols, counted, "de").encode(lines[:99]) == expected


def test_pieces_are_joined_as_by_argos_and_no_streamed_text_is_taken_back(lines: list[str], merges: str) -> None:
    extra = ["x", "@-@", "x", "&quot;", "x", "&quot;", "&apos;", "x", "(", "x", ")"]
    tokenizer = MosesBpeTokenizer([*dict.fromkeys([*extra, *symbols_of(merges, lines)])], merges, "de")
    for row in [*tokenizer.encode(lines[:99]), [tokenizer.ids[piece] for piece in extra]]:
        words = " ".join(tokenizer.pieces(row)).replace("@@ ", "").split(" ")
        text = tokenizer.decode(row)
        if UNK not in row:
            assert text == (moses.MosesDetokenizer("de").detokenize(words) if row else "")
        assert "".join(growing_text(tokenizer, row)) == text
    plain = MosesBpeTokenizer(symbols_of(merges, lines), merges, "de")
    assert plain.decode(plain.encode([lines[2]])[0]) == 'Anna-Lena \'s "Hut" kostet 3,50 €!'
    dashes = MosesBpeTokenizer(["x", "@-@"], merges + "@ -\n@- @</w>\n", "de")
    assert dashes.pieces(dashes.encode(["x-x"])[0]) == ["x", "@-@", "x"], "this vocabulary has words cut at dashes"


def test_a_piece_without_an_id_is_unknown_and_a_stored_tokenizer_is_the_same(merges: str) -> None:
    tokenizer = MosesBpeTokenizer(["a", "b@@"], merges, "de")
    assert tokenizer.encode(["a z", ""]) == [[4, UNK], []]
    assert tokenizer.decode([4, UNK, 5, 4]) == "a <unk> ba"
    loaded = load_tokenizer(CONFIG, "de", tokenizer.to_bytes())
    assert loaded.sha256 == tokenizer.sha256
    assert loaded.encode(["a z"]) == [[4, UNK]]


@pytest.mark.parametrize("merges", ["#version: 0.2\na b\nabc\n", "a b 3\nc d\n", ""])
def test_damaged_merges_are_refused(merges: str) -> None:
    with pytest.raises(RunError, match="is no merge of two pieces"):
        MosesBpeTokenizer(["a"], merges, "de")


def test_none_can_be_trained_and_sacremoses_is_named(merges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r'tokenizer.kind = "moses-bpe" comes with an imported model'):
        train_tokenizer(CONFIG, ["a"], "de")
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(MissingExtraError, match=r"manyheads\[words\]"):
        MosesBpeTokenizer(["a"], merges, "de").encode(["a"])
