"""Examine tokenizers and the function that makes a batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

import torch
from torch import Tensor

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import report_errors
from transformer_doctor.errors import UsageError
from transformer_doctor.report import Finding, Report, make_report

_SHORT_LENGTHS, _MEDIUM_LENGTHS = (3, 5, 4), (29, 23, 27)  # lengths of two batches that need not be padded alike
_MUCH_PADDING = 0.5
# tokens of a tokenizer's own texts over those of the other tokenizer, from where on it is the wrong one
_LONGER = 1.15
_WORD = 3  # letters of the shortest piece of a vocabulary that is looked for in texts
_MAX_UNSEEN_SHARE = 0.5  # share of the pieces that train does not have, found in test
_LEAST_PIECES = 3
_NO_IDS = ("mask", "type", "position", "length")  # parts of the names of tensors that hold no token ids


class Tokenizer(Protocol):
    """Encoder of text to ids, and decoder of ids to text."""

    def encode(self, text: str) -> Sequence[int]:
        """Return the ids of a text, perhaps between marks."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids without marks."""
        ...


@report_errors
def examine_encoding(
    encode_pair: Callable[[str, str], tuple[Sequence[int], Sequence[int]]],
    pairs: Sequence[tuple[str, str]],
    *,
    source: Tokenizer,
    target: Tokenizer,
    marks: Sequence[int] = (),
) -> Report:
    """Examine the function that turns a pair of texts into ids (invariant K).

    Args:
        encode_pair: source and target text to their ids, as training does it.
        pairs: some pairs of texts; a dozen will do.
        source: tokenizer of the source, with encode(text) and decode(ids).
        target: tokenizer of the target.
        marks: ids that are no text: begin, end, padding.
    """
    encoded = [encode_pair(*pair) for pair in pairs]
    findings = [
        *_round_trips(encoded, pairs, source, target, set(marks)),
        *_exchanged_findings(pairs, source, target),
    ]
    return make_report(findings, ["ids decode to the text they were made of", "each side has its own tokenizer"])


@report_errors
def examine_vocabulary(
    tokenizer: Tokenizer, *, vocab_size: int, train: Sequence[str], test: Sequence[str]
) -> Report:
    """Examine whether the vocabulary of a tokenizer, or its merges, were made from the test set too.

    A vocabulary that was made from other, larger text, such as that of a pre-trained model, is not reported.

    Args:
        tokenizer: tokenizer of the texts.
        vocab_size: the number of token ids.
        train: all texts of the training data; with a part of them the answer is wrong.
        test: texts of the test set.
    """
    pieces = {_decode(tokenizer, [token]).strip().casefold() for token in range(vocab_size)}
    seen_text, test_text = ("\n".join(texts).casefold() for texts in (train, test))
    foreign = {piece for piece in pieces if len(piece) >= _WORD and piece.isalpha() and piece not in seen_text}
    hits = sorted(piece for piece in foreign if piece in test_text)
    findings = []
    if len(hits) >= max(_LEAST_PIECES, _MAX_UNSEEN_SHARE * len(foreign)):
        evidence = f"{len(foreign)} of {len(pieces)} pieces of the vocabulary occur nowhere"
        evidence += f" in train, and {len(hits)} of them in test: {', '.join(hits[:3])}"
        findings.append(model_finding("vocabulary-from-test-set", evidence))
    return make_report(findings, ["the vocabulary was made without the test set"])


def _round_trips(
    encoded: Sequence[tuple[Sequence[int], Sequence[int]]],
    pairs: Sequence[tuple[str, str]],
    source: Tokenizer,
    target: Tokenizer,
    marks: set[int],
) -> Iterator[Finding]:
    for side, (own, other) in enumerate(((source, target), (target, source))):
        name = ("source", "target")[side]
        texts = [pair[side] for pair in pairs]
        ids = [_plain(rows[side], marks) for rows in encoded]
        decodable = _agreement(own, ids, texts)
        swapped = sum(row == _plain(other.encode(text), marks) for row, text in zip(ids, texts, strict=True))
        own_ids = sum(row == _plain(own.encode(text), marks) for row, text in zip(ids, texts, strict=True))
        counted = f"{decodable} of {len(texts)} {name} texts come back from their ids"
        if decodable == len(texts) and swapped <= own_ids:
            continue
        if swapped > own_ids:
            evidence = f"{counted}; {swapped} have the ids that the other side's tokenizer gives,"
            yield model_finding("wrong-tokenizer", f"{evidence} {own_ids} those of their own")
        else:
            index = next(index for index, text in enumerate(texts) if not _agreement(own, [ids[index]], [text]))
            yield model_finding("round-trip", f"{counted}; {texts[index]!r} as {_decode(own, ids[index])!r}")


def _exchanged_findings(
    pairs: Sequence[tuple[str, str]], source: Tokenizer, target: Tokenizer
) -> Iterator[Finding]:
    """Yield a finding if each side's tokenizer cuts its own texts into more tokens than the other side's does."""
    ratios = []
    for side, (own, other) in enumerate(((source, target), (target, source))):
        tokens = [sum(len(tokenizer.encode(pair[side])) for pair in pairs) for tokenizer in (own, other)]
        ratios.append(tokens[0] / max(1, tokens[1]))
    if min(ratios) > _LONGER:
        evidence = (
            f"with their own tokenizer sources have {ratios[0]:.2f} times as many tokens as with the target's, "
            f"and targets {ratios[1]:.2f} times as many as with the source's: the two are exchanged"
        )
        yield model_finding("wrong-tokenizer", evidence)


def _plain(ids: Sequence[int], marks: Set[int | None]) -> list[int]:
    return [int(token) for token in ids if int(token) not in marks]


def _agreement(tokenizer: Tokenizer, ids: Sequence[list[int]], texts: Sequence[str]) -> int:
    """Return the number of texts that come back from their ids, spaces aside."""
    return sum(_decode(tokenizer, row).split() == text.split() for row, text in zip(ids, texts, strict=True))


def _decode(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Return the text of ids, an empty one where the tokenizer does not know the ids."""
    try:
        return tokenizer.decode(ids)
    except (IndexError, KeyError, ValueError):
        return ""


@report_errors
def examine_collate(
    collate: Callable[[list[list[int]], list[list[int]]], Any],
    *,
    vocab_size: int,
    pad: int,
    bos: int | None = None,
    eos: int | None = None,
    longest: int = 2000,
) -> Report:
    """Examine the function that makes a batch.

    Args:
        collate: rows of source and of target ids, without marks, to a batch: tensors of ids (B, length), the
            source's first, in a tuple, a list, a mapping or the attributes of an object.
        vocab_size: the number of token ids.
        pad: the id of padding.
        bos: the mark that begins a target.
        eos: the mark that ends a target.
        longest: tokens of a text that is surely too long. Texts of up to 29 tokens are tried too; a function that
            drops them must still return two tensors, with no rows.

    Raises:
        UsageError: no two such tensors are found in a batch.
    """
    tokens = [token for token in range(vocab_size) if token not in (pad, bos, eos)]
    generator = torch.Generator().manual_seed(0)

    def rows(lengths: Sequence[int]) -> list[list[int]]:
        drawn = [torch.randint(len(tokens), (length,), generator=generator).tolist() for length in lengths]
        return [[tokens[index] for index in row] for row in drawn]

    asked = ["long texts are not cut without a warning"]
    findings: list[Finding] = []
    short, middling = (
        _sides_of(collate(rows(lengths), rows(lengths)), pad) for lengths in (_SHORT_LENGTHS, _MEDIUM_LENGTHS)
    )
    if middling[0].numel():
        findings += _fixed_padding(short, middling, pad)
        asked.append("batches are padded no more than they need")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            sources = rows([longest, 4])
            batch = collate(sources, rows([longest, 5]))
        except Exception:  # any exception: refusing is one of the right answers
            batch = None
    if batch is not None:
        sides = _sides_of(batch, pad)
        findings += _cuts(sides, longest, pad, eos, warned=bool(warned))
        kept = [_plain(row, {pad, bos, eos}) for row in sides[0].tolist()]
        left = next((len(row) for row in kept if row[-_WORD:] == sources[0][-_WORD:]), longest)
        if left < longest:
            evidence = f"of a source of {longest} tokens the last {left} are left: its beginning is missing"
            findings.append(model_finding("silent-cut", evidence, "error"))
    return make_report(findings, asked)


def _sides_of(batch: Any, pad: int) -> tuple[Tensor, Tensor]:
    """Return source and target ids of a batch (B, length); negative labels, which mark padding, become `pad`.

    Raises:
        UsageError: the batch holds no two tensors of ids.
    """
    if isinstance(batch, (tuple, list)):
        values: list[Any] = list(batch)
    else:
        named = batch if isinstance(batch, Mapping) else vars(batch)
        values = [value for name, value in named.items() if not any(part in name for part in _NO_IDS)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    id_tensors = [
        value
        for value in tensors
        if not value.numel() or (value.dim() == 2 and not value.is_floating_point() and value.dtype != torch.bool)
    ]
    if len(id_tensors) < 2:
        raise UsageError(f"{type(batch).__name__} holds no two tensors of ids (B, length): source and target.")
    source, target = id_tensors[:2]
    return source, target.masked_fill(target < 0, pad)


def _fixed_padding(short: tuple[Tensor, Tensor], middling: tuple[Tensor, Tensor], pad: int) -> Iterator[Finding]:
    for side, (first, second) in zip(("source", "target"), zip(short, middling, strict=True), strict=True):
        share = float((first == pad).float().mean())
        if first.size(1) == second.size(1) and share > _MUCH_PADDING:
            evidence = f"{side}s of at most {max(_SHORT_LENGTHS)} and of at most {max(_MEDIUM_LENGTHS)} tokens"
            evidence += f" are all padded to {first.size(1)}: {share:.0%} of the first batch is padding"
            yield model_finding("fixed-padding", evidence)


def _cuts(
    sides: tuple[Tensor, Tensor], longest: int, pad: int, eos: int | None, *, warned: bool
) -> Iterator[Finding]:
    """Yield findings about a text that is too long and was cut; `warned` states whether there was a warning."""
    source, target = ((rows != pad).sum(1).max() for rows in sides)
    if int(target) < longest:
        row = sides[1][int((sides[1] != pad).sum(1).argmax())]
        real = row[row != pad].tolist()
        if real and real[-1] == eos and len(real) > 10:  # the short pair of the batch was not cut
            evidence = f"of a target of {longest} tokens {len(real)} are left, and the last of"
            yield model_finding("end-kept-on-cut-targets", f"{evidence} them is the end symbol")
    if 10 < int(source) < longest and not warned:
        evidence = f"of a source of {longest} tokens {int(source)} are left, without error or warning"
        yield model_finding("silent-cut", evidence)
