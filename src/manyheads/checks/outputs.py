"""Outputs of a translator and of a language model: lengths, loops, copies, unknown symbols and equal outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitext.defects import repeats
from manyheads.checks.catalogue import run_finding
from manyheads.checks.evidence import QuotedLines, Share
from manyheads.checks.subjects import TrainedLanguageModel, TrainedTranslator
from manyheads.evaluation import score
from manyheads.evaluation.outputs import DEFECTS, MAX_LENGTH_RATIO, MIN_LENGTH_RATIO, WORRY, Output, length_ratio
from manyheads.text.languages import other_language
from transformer_doctor.report import Finding

_TRANSLATED = 100  # validation sentences
_GENERATED, _TOKENS = 6, 96  # texts that a language model generates, and their tokens
_LOOPING = 1 / 3  # of the generated texts
_VERY_SHORT_SHARE = 0.6  # characters of all outputs over those of all references
_SOME, _MANY = WORRY, 0.2  # share of the outputs
_LEAST_OUTPUTS = 2
_MIN_DIFFERENT_SHARE = 0.5  # share of different outputs among different sources
_UNKNOWN, _UNKNOWN_WORDS = 0.05, 0.5  # share of outputs with <unk>; with whole words <unk> is usual
_COUNTED = (
    "never-ends",
    "nothing-said",
    "repeats-itself",
    "copies-its-source",
    "in-another-language",
)  # of DEFECTS


def check_outputs(trained: TrainedTranslator) -> Iterator[Finding]:
    """Translate the first validation sentences as the run does."""
    config, pairs = trained.config, sorted(trained.read_pairs, key=lambda pair: pair.line)[:_TRANSLATED]
    outputs = [
        Output(
            pair.line,
            pair.source,
            pair.target,
            text,
            ended,
            other_language(text, config.data.target, trained.profiles),
        )
        for pair, (text, ended) in zip(pairs, trained.translate([pair.source for pair in pairs]), strict=True)
    ]
    scores = score(
        [output.text for output in outputs], [output.reference for output in outputs],
        protocol=config.evaluation.protocol, language=config.data.target,
    )  # fmt: skip
    trained.facts["outputs"] = (
        f"BLEU {scores.bleu:.1f} on the first {len(outputs)} validation sentences, {config.search.method} "
        f"({scores.signature['bleu']})"
    )
    return _output_findings(outputs, whole_words=config.tokenizer.kind == "words")


def check_generated(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Sample some texts of a language model at its own probabilities."""
    looping = [text for text in trained.generate(_GENERATED, _TOKENS) if repeats(" ".join(text.split()))]
    if len(looping) > _LOOPING * _GENERATED:
        quoted = QuotedLines()
        quoted.add(1, looping[0])
        yield run_finding(
            "repeats-itself", f"{Share(len(looping), _GENERATED)} of the texts it writes by itself{quoted}"
        )


def _output_findings(outputs: Sequence[Output], *, whole_words: bool) -> Iterator[Finding]:
    """Yield findings about lengths, loops, copies, unknown symbols and equal outputs.

    Args:
        outputs: outputs of held-out lines.
        whole_words: the vocabulary is one of whole words, in which unknown ones are usual.
    """
    yield from _length_findings(outputs)
    for name in _COUNTED:
        chosen = [output for output in outputs if DEFECTS[name](output)]
        yield from _count_findings(name, chosen, len(outputs), _SOME, _MANY)
    unknown = [output for output in outputs if "<unk>" in output.text]
    yield from _count_findings(
        "writes-unknown", unknown, len(outputs), _UNKNOWN_WORDS if whole_words else _UNKNOWN, 1.0
    )
    sources = {output.source for output in outputs}
    texts = [output.text for output in outputs]
    if len(sources) >= 10 and len(set(texts)) < _MIN_DIFFERENT_SHARE * len(sources):
        most_common = max(set(texts), key=texts.count)
        evidence = f'{len(sources):,} different sources have {len(set(texts)):,} different outputs; "{most_common}"'
        yield run_finding("same-output", f"{evidence} occurs {texts.count(most_common):,} times")


def _length_findings(outputs: Sequence[Output]) -> Iterator[Finding]:
    """Yield a finding if all outputs together are too short or too long."""
    ratio = length_ratio(outputs)
    evidence = f"{len(outputs):,} outputs are {ratio:.2f} times as long as their references"
    if ratio < MIN_LENGTH_RATIO:
        yield run_finding("too-short", evidence, "error" if ratio < _VERY_SHORT_SHARE else None)
    elif ratio > MAX_LENGTH_RATIO:
        yield run_finding("too-long", evidence)


def _count_findings(name: str, chosen: Sequence[Output], size: int, some: float, many: float) -> Iterator[Finding]:
    """Yield a finding, with examples, if enough of `size` outputs show a defect."""
    part = Share(len(chosen), size)
    if part > some and len(chosen) >= _LEAST_OUTPUTS:
        quoted = QuotedLines()
        for output in chosen:
            quoted.add(output.line, f"{output.source} -> {output.text}")
        yield run_finding(name, f"{part} outputs{quoted}", "error" if part > many else None)
