"""CTranslate2 behind the interface that translators ask: greedy and beam search at its speed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyheads.errors import RunError, UsageError, require
from manyheads.search.interface import Cancelled, Hypothesis, never_cancelled
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import EOS, SPECIALS

__all__ = ["CTranslate2Engine"]

MOST_TOKENS = 1024  # of a batch: more are no faster on a CPU, and leave less to share out among the workers
KNOWN = {"n_best", "min_length_ratio", "no_repeat_ngram", "alignment", "attention_layer", "prefixes", "forbidden"}
REASONS = {
    "sampling": "what it draws for a row depends on the rows beside it",
    "coverage_penalty": "its coverage penalty follows another formula",
    "attention_layer": "it gives the attention of the last decoder layer only",
    "prefixes": "it gives no attention of an output that begins with a prefix",
}


@dataclass(frozen=True)
class Part:
    """Rows that go through one call: their places, and what is the same for all of them.

    Attributes:
        places: which rows of the search.
        limit: the longest output in tokens, the end mark not counted.
        least: the shortest.
        forbidden: sequences that must not come out, as text.
    """

    places: list[int]
    limit: int
    least: int
    forbidden: tuple[tuple[str, ...], ...]


class CTranslate2Engine:
    """A model in CTranslate2's format.

    Many rows go to one worker a core, each with one thread; a single row of a model that is not int8 goes to one
    worker with all cores: so it is fastest on a CPU (`benchmarks/decode_peers.py`).

    Args:
        folder: a CTranslate2 model.
        names: source and target vocabularies, the text of each id.
        max_positions: the longest input and output, the mark at its end or beginning counted.
        num_layers: layers of the decoder.
        quantization: what its matrices are stored as: "float32", "int8" and so on.
        compute_type: what CTranslate2 computes in; "default" is the quantisation where the device can compute it.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        workers: workers side by side; chosen unless given.
        threads: threads of each; chosen unless given.

    Raises:
        MissingExtraError: ctranslate2 is not installed.
    """

    def __init__(
        self,
        folder: Path,
        names: tuple[Sequence[str], Sequence[str]],
        *,
        max_positions: int,
        num_layers: int,
        quantization: str,
        compute_type: str = "default",
        device: str = "auto",
        workers: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.library: Any = require("ctranslate2", extra="ct2", purpose="CTranslate2")
        self.folder = folder
        self.source_names, self.target_names = names
        self.ids = {name: i for i, name in enumerate(self.target_names)}
        self.most = max_positions - 1
        self.last_layer = num_layers - 1
        kind, _, index = device.partition(":")
        on_gpu = kind == "cuda" or (kind == "auto" and self.library.get_cuda_device_count() > 0)
        self.place = {"device": "cuda" if on_gpu else "cpu", "device_index": int(index or 0)}
        self.asked_type = compute_type
        cores = 1 if on_gpu else torch.get_num_threads()
        self.many = (workers or max(1, cores // (threads or 1)), threads or max(1, cores // (workers or cores)))
        chosen = workers is None and threads is None
        self.single = (1, cores) if chosen and not quantization.startswith("int8") else self.many
        self.translators: dict[tuple[int, int], Any] = {}

    @property
    def compute_type(self) -> str:
        """What CTranslate2 computes in on this device, such as "int8_float32"."""
        return str(self.translator(2).compute_type)

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, cancelled: Cancelled = never_cancelled
    ) -> list[list[Hypothesis]]:
        """Search for each row, as `manyheads.search.interface.Engine` says.

        Its beam stops by CTranslate2's rule, so with a beam another output than that of our own search can win.
        A call of the library cannot be broken off: rows that are abandoned go to the end of the call they are in.

        Raises:
            UsageError: an option that CTranslate2 does not have.
            RunError: it cannot read the model.
        """
        self.refuse(options)
        texts = [self.source_text(row) for row in rows]
        found: list[list[Hypothesis]] = [[] for _ in rows]
        for part in self.parts(rows, options):
            if not set(part.places) <= set(cancelled()):
                self.search_part(part, texts, options, found)
        limits = options.longest(rows, self.most)
        long = [i for i, outputs in enumerate(found) if any(len(one.tokens) > limits[i] for one in outputs)]
        again = long if options.beam_size > 1 else []  # a greedy output has only to be cut
        for part in self.parts(rows, options, among=again, apart=True):
            self.search_part(part, texts, options, found)
        for i in long:  # one token more was allowed, for the end mark
            cut = [shortened(one, limits[i]) for one in found[i]]
            found[i] = list({one.tokens: one for one in reversed(cut)}.values())[::-1]
        renewed = range(len(rows)) if options.token_scores or options.prefixes else long
        self.add_scores(rows, found, list(renewed), options)
        return found

    def score(self, rows: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probabilities of the tokens of given outputs, and of an end mark after them, in nats."""
        translator = self.translator(len(rows))
        results = translator.score_batch(
            [self.source_text(row) for row in rows],
            [[self.target_names[token] for token in output] for output in outputs],
            max_batch_size=batch_tokens([len(output) for output in outputs], MOST_TOKENS, translator),
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in results]

    def stream(self, row: Sequence[int], options: SearchOptions) -> Iterator[int]:
        """The tokens of the greedy output of one row, each as soon as it is known, without marks.

        Raises:
            UsageError: an option that CTranslate2 does not have.
            RunError: it cannot read the model.
        """
        self.refuse(options)
        (part,) = self.parts([row], options)
        steps = self.translator(1).generate_tokens(
            self.source_text(row),
            target_prefix=self.prefix(part, options)[0] if options.prefixes else None,
            max_decoding_length=part.limit,
            min_decoding_length=part.least,
            no_repeat_ngram_size=options.no_repeat_ngram,
            suppress_sequences=[list(sequence) for sequence in part.forbidden] or None,
        )
        for step in steps:
            token = self.ids[step.token]
            if token == EOS:
                return
            yield token

    def refuse(self, options: SearchOptions) -> None:
        """Refuse what the library cannot do, by name."""
        asked = options.in_use()
        wrong = [name for name in asked if name not in KNOWN]
        if options.alignment and options.attention_layer not in (-1, self.last_layer):
            wrong.append("attention_layer")
        if options.alignment and options.prefixes:
            wrong.append("prefixes")
        if wrong:
            told = [f"{name} ({REASONS[name]})" if name in REASONS else name for name in wrong]
            raise UsageError(f"--engine ctranslate2 cannot do: {', '.join(told)}. Use --engine torch.")

    def parts(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        *,
        among: Sequence[int] | None = None,
        apart: bool = False,
    ) -> list[Part]:
        """Rows that can go through one call; with `apart`, only rows of the same limit go together."""
        limits, shortest = options.longest(rows, self.most), options.shortest(rows)
        groups: defaultdict[tuple[int, int, tuple[tuple[str, ...], ...]], list[int]] = defaultdict(list)
        for i in range(len(rows)) if among is None else among:
            forbidden = options.forbidden[i] if options.forbidden else ()
            words = tuple(tuple(self.target_names[token] for token in sequence) for sequence in forbidden)
            groups[limits[i] if apart else 0, min(shortest[i], limits[i]), words].append(i)
        return [
            Part(places, max(limits[i] for i in places), least, words)
            for (_, least, words), places in groups.items()
        ]

    def prefix(self, part: Part, options: SearchOptions) -> list[list[str]]:
        """What the outputs of the rows of a part begin with, as text."""
        return [[self.target_names[token] for token in options.prefixes[i]] for i in part.places]

    def search_part(
        self, part: Part, texts: list[list[str]], options: SearchOptions, found: list[list[Hypothesis]]
    ) -> None:
        """Search for the rows of a part, and put what was found to its places."""
        translator, beam = self.translator(len(part.places)), options.beam_size
        results = translator.translate_batch(
            [texts[i] for i in part.places],
            target_prefix=self.prefix(part, options) if options.prefixes else None,
            max_batch_size=batch_tokens(
                [len(texts[i]) for i in part.places], options.batch_tokens // beam, translator
            ),
            batch_type="tokens",
            beam_size=beam,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram,
            suppress_sequences=[list(sequence) for sequence in part.forbidden] or None,
            max_input_length=0,
            max_decoding_length=part.limit + 1,
            min_decoding_length=part.least,
            return_scores=True,
            return_end_token=True,
            return_attention=options.alignment,
        )
        for i, result in zip(part.places, results, strict=True):
            attention = result.attention or [None] * len(result.hypotheses)
            found[i] = [
                self.hypothesis(tokens, score, looks, options.length_penalty)
                for tokens, score, looks in zip(result.hypotheses, result.scores, attention, strict=True)
            ]

    def hypothesis(
        self, names: Sequence[str], score: float, looks: Sequence[Sequence[float]] | None, length_penalty: float
    ) -> Hypothesis:
        """What the library found, in our terms; its attention lacks the source's end mark, which has the rest."""
        ended = bool(names) and names[-1] == SPECIALS[EOS]
        return Hypothesis(
            tokens=tuple([self.ids[name] for name in (names[:-1] if ended else names)]),
            log_probability=score * max(1, len(names)) ** length_penalty,
            score=score,
            token_scores=(),
            ended=ended,
            attention=tuple((*look, max(0.0, 1 - sum(look))) for look in looks) if looks is not None else None,
        )

    def add_scores(
        self,
        rows: Sequence[Sequence[int]],
        found: list[list[Hypothesis]],
        places: list[int],
        options: SearchOptions,
    ) -> None:
        """Give the outputs of some rows the log-probability of each token; rank them by what that adds up to."""
        pairs = [(i, one) for i in places for one in found[i]]
        if not pairs:
            return
        scores = self.score([rows[i] for i, _ in pairs], [one.tokens for _, one in pairs])
        for i in places:
            found[i] = []
        for (i, one), parts in zip(pairs, scores, strict=True):
            found[i].append(with_scores(one, parts, options.length_penalty))
        for i in places:
            found[i].sort(key=lambda one: -one.score)

    def source_text(self, row: Sequence[int]) -> list[str]:
        """Source ids as the library wants them."""
        return [self.source_names[i] for i in row]

    def translator(self, rows: int) -> Any:
        """The library's translator for so many rows."""
        shape = self.single if rows == 1 else self.many
        if shape not in self.translators:
            workers, threads = shape
            try:
                self.translators[shape] = self.library.Translator(
                    str(self.folder),
                    inter_threads=workers,
                    intra_threads=threads,
                    compute_type=self.asked_type,
                    **self.place,
                )
            except (RuntimeError, ValueError, IndexError) as error:
                raise RunError(f"CTranslate2 cannot open {self.folder}: {error}") from error
        return self.translators[shape]


def batch_tokens(lengths: Sequence[int], most: int, translator: Any) -> int:
    """Tokens a batch, padding included: few enough that every worker gets some."""
    share = -(-sum(length + 1 for length in lengths) // translator.num_translators)
    return max(1, min(most, MOST_TOKENS, share))


def shortened(one: Hypothesis, limit: int) -> Hypothesis:
    """An output cut to so many tokens; its scores are those before."""
    if len(one.tokens) <= limit:
        return one
    attention = None if one.attention is None else one.attention[:limit]
    return Hypothesis(one.tokens[:limit], one.log_probability, one.score, (), ended=False, attention=attention)


def with_scores(one: Hypothesis, log_probabilities: Sequence[float], length_penalty: float) -> Hypothesis:
    """An output with the log-probabilities of its tokens; the last is that of an end mark."""
    scores = tuple(log_probabilities if one.ended else log_probabilities[:-1])
    total = sum(scores)
    score = total / max(1, len(scores)) ** length_penalty
    return Hypothesis(one.tokens, total, score, scores, one.ended, attention=one.attention)
