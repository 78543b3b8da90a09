"""CTranslate2's own search and scores, to compare exports and imported models with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from manyheads.errors import RunError, UsageError, refuse_pickling, require
from manyheads.search.interface import Cancelled, Hypothesis, best_outputs, never_cancelled, with_scores
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import EOS

_MAX_BATCH_TOKENS = 1024  # more are no faster on a CPU, and leave fewer batches for the workers


@dataclass(frozen=True)
class RowGroup:
    """Rows of one call of the library.

    Attributes:
        rows: indices of the rows of the search.
        limit: maximum length of an output in tokens, without the end mark.
        least: minimum length.
        prefixes: pieces of the forced beginning of each row; None without.
    """

    rows: list[int]
    limit: int
    least: int
    prefixes: list[list[str]] | None


class CTranslate2Engine:
    """A model in CTranslate2's format, with one worker for each core, each with one thread.

    Args:
        folder: a CTranslate2 model.
        names: source and target vocabularies, the piece of each id.
        max_positions: maximum length of input and output with the mark at its end or beginning.
        compute_type: number format of the computation; "default" is that of the matrices, if the device can.
        device: "cpu", "cuda", "cuda:1"; "auto" is a GPU if there is one.

    Raises:
        MissingExtraError: ctranslate2 is not installed.
    """

    __reduce__ = refuse_pickling

    def __init__(
        self,
        folder: Path,
        names: tuple[Sequence[str], Sequence[str]],
        *,
        max_positions: int,
        compute_type: str = "default",
        device: str = "auto",
    ) -> None:
        self.library: Any = require("ctranslate2", extra="ct2", purpose="CTranslate2")
        self.folder = folder
        self.source_names, self.target_names = names
        self.ids = {name: i for i, name in enumerate(self.target_names)}
        self.longest = max_positions - 1
        kind, _, index = device.partition(":")
        self.on_gpu = kind == "cuda" or (kind == "auto" and self.library.get_cuda_device_count() > 0)
        self.device = {"device": "cuda" if self.on_gpu else "cpu", "device_index": int(index or 0)}
        self.requested_type = compute_type

    @property
    def compute_type(self) -> str:
        """Return the number format of the computation on this device, such as "int8_float32"."""
        return str(self.translator.compute_type)

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Search for each row, greedily or with a beam.

        The beam stops by CTranslate2's rule, so that the output may differ from that of the beam search of
        manyheads. A search is never cancelled.

        Raises:
            UsageError: more is asked for than outputs with their scores and prefixes.
            RunError: CTranslate2 cannot read the model.
        """
        if any(constraint.required or constraint.forbidden for constraint in constraints) or (
            options.sampling or options.alternatives or options.alignment
        ):
            raise UsageError("CTranslate2 is compared by greedy and beam search alone. Use a run.")
        constraints = constraints or [UNCONSTRAINED] * len(rows)
        texts = [self.source_text(row) for row in rows]
        results: list[list[Hypothesis]] = [[] for _ in rows]
        for group in self.row_groups(rows, options, constraints, range(len(rows))):
            self.search_group(group, texts, options, results)
        limits = options.longest(rows, self.longest, constraints)
        long = [i for i, outputs in enumerate(results) if any(len(output.tokens) > limits[i] for output in outputs)]
        again = long if options.beam_size > 1 else []  # a greedy output has only to be cut
        for limit in {limits[i] for i in again}:
            for group in self.row_groups(rows, options, constraints, [i for i in again if limits[i] == limit]):
                self.search_group(group, texts, options, results)
        for i in long:  # one token more was allowed, for the end mark
            cut = [_shorten(output, limits[i]) for output in results[i]]
            results[i] = list({output.tokens: output for output in reversed(cut)}.values())[::-1]
        prefixed = any(constraint.prefix for constraint in constraints)
        rescored = range(len(rows)) if options.token_scores or prefixed else long
        self.add_scores(rows, results, list(rescored), options)
        return results

    def score(self, rows: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of given outputs and their end marks, in nats."""
        translator = self.translator
        results = translator.score_batch(
            [self.source_text(row) for row in rows],
            [self.target_pieces(output) for output in outputs],
            max_batch_size=_batch_tokens([len(output) for output in outputs], _MAX_BATCH_TOKENS, translator),
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in results]

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Raise `UsageError`: outputs that are compared are not streamed."""
        raise UsageError("CTranslate2 computes whole outputs here. Use a run.")

    def row_groups(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints],
        chosen: Iterable[int],
    ) -> list[RowGroup]:
        """Group the chosen rows by their minimum length, which the rows of a call share."""
        limits, shortest = options.longest(rows, self.longest, constraints), options.shortest(rows)
        prefixed = any(constraint.prefix for constraint in constraints)
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for i in chosen:
            groups[min(shortest[i], limits[i])].append(i)
        return [
            RowGroup(
                members,
                max(limits[i] for i in members),
                least,
                [self.target_pieces(constraints[i].prefix) for i in members] if prefixed else None,
            )
            for least, members in groups.items()
        ]

    def search_group(
        self, group: RowGroup, texts: list[list[str]], options: SearchOptions, results: list[list[Hypothesis]]
    ) -> None:
        """Search for the rows of a group, and store the hypotheses in `results`."""
        translator, beam = self.translator, options.beam_size
        outputs = translator.translate_batch(
            [texts[i] for i in group.rows],
            target_prefix=group.prefixes,
            max_batch_size=_batch_tokens(
                [len(texts[i]) for i in group.rows], options.batch_tokens // beam, translator
            ),
            batch_type="tokens",
            beam_size=beam,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram or 0,
            max_input_length=0,
            max_decoding_length=group.limit + 1,
            min_decoding_length=group.least,
            return_scores=True,
            return_end_token=True,
        )
        for i, output in zip(group.rows, outputs, strict=True):
            results[i] = [
                self.hypothesis(pieces, score, options.length_penalty)
                for pieces, score in zip(output.hypotheses, output.scores, strict=True)
            ]

    def hypothesis(self, pieces: Sequence[str], score: float, length_penalty: float) -> Hypothesis:
        """Convert a hypothesis."""
        ended = bool(pieces) and pieces[-1] == self.target_names[EOS]
        return Hypothesis(
            tokens=tuple([self.ids[piece] for piece in (pieces[:-1] if ended else pieces)]),
            log_probability=score * max(1, len(pieces)) ** length_penalty,
            score=score,
            token_scores=(),
            ended=ended,
        )

    def add_scores(
        self,
        rows: Sequence[Sequence[int]],
        results: list[list[Hypothesis]],
        chosen: list[int],
        options: SearchOptions,
    ) -> None:
        """Add the log-probability of each token to the outputs of some rows, and rank them by the sum."""
        pairs = [(i, output) for i in chosen for output in results[i]]
        if not pairs:
            return
        scores = iter(self.score([rows[i] for i, _ in pairs], [output.tokens for _, output in pairs]))
        for i in chosen:
            scored = []
            for output in results[i]:
                values = next(scores)[: len(output.tokens) + output.ended]  # without an end mark, drop its score
                scored.append(with_scores(output, values, options.length_penalty))
            results[i] = best_outputs(scored, len(scored))

    def source_text(self, row: Sequence[int]) -> list[str]:
        """Return the pieces of source ids."""
        return [self.source_names[i] for i in row]

    def target_pieces(self, tokens: Sequence[int]) -> list[str]:
        """Return the pieces of target ids."""
        return [self.target_names[token] for token in tokens]

    @cached_property
    def translator(self) -> Any:
        """The library's translator.

        Raises:
            RunError: CTranslate2 cannot read the model.
        """
        try:
            return self.library.Translator(
                str(self.folder),
                inter_threads=1 if self.on_gpu else torch.get_num_threads(),
                intra_threads=1,
                compute_type=self.requested_type,
                **self.device,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise RunError(f"CTranslate2 cannot open {self.folder}: {error}") from error


def _batch_tokens(lengths: Sequence[int], most: int, translator: Any) -> int:
    """Return the tokens of a batch, padding included, so that every worker gets some."""
    share = -(-sum(length + 1 for length in lengths) // translator.num_translators)
    return max(1, min(most, _MAX_BATCH_TOKENS, share))


def _shorten(output: Hypothesis, limit: int) -> Hypothesis:
    """Cut an output to `limit` tokens; its score stays."""
    if len(output.tokens) <= limit:
        return output
    return replace(output, tokens=output.tokens[:limit], token_scores=(), ended=False)
