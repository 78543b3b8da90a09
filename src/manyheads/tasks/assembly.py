"""From what a search found to what a person reads: texts of lines, alignments, warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.tasks.alignment import Link, pharaoh, word_alignment, word_numbers
from manyheads.tasks.checks import loops, odd_length
from manyheads.tasks.options import Expected
from manyheads.tasks.parts import Line
from manyheads.tasks.result import Candidate, Translation
from manyheads.text.tokenizer import EOS, TokenizerPair

__all__ = ["Assembler"]


class Assembler:
    """Makes translations of lines from the outputs of their parts."""

    def __init__(self, tokenizers: TokenizerPair, options: SearchOptions, longest_source: int) -> None:
        self.tokenizers = tokenizers
        self.options = options
        self.longest_source = longest_source

    def translation(self, line: Line, outputs: Sequence[Sequence[Hypothesis]], expected: Expected) -> Translation:
        """What became of a line.

        The candidate of rank k of a line of several parts is made of the k-th output of each part, or of its last
        where there are fewer.

        Args:
            line: the line and its parts.
            outputs: of each part, best first; none for a part without tokens.
            expected: what was asked of the line.
        """
        ranks = range(max(map(len, outputs), default=0))
        chosen = [[found[min(rank, len(found) - 1)] if found else None for found in outputs] for rank in ranks]
        candidates = [self.candidate(line, one) for one in chosen]
        if not chosen:
            return Translation(line.text, [], truncated=False)
        best = chosen[0]
        cut = any(len(ids) > self.longest_source for ids in line.parts)
        return Translation(
            source=line.text,
            hypotheses=candidates,
            truncated=cut or any(one is not None and not one.ended for one in best),
            alignment=pharaoh(self.alignment(line, best)) if self.options.attention else None,
            sentences=len(line.parts),
            warnings=self.warnings(line, best, candidates[0].text, expected),
        )

    def candidate(self, line: Line, parts: Sequence[Hypothesis | None]) -> Candidate:
        """The outputs of the parts of a line as one candidate."""
        tokenizer = self.tokenizers.target
        found = [one for one in parts if one is not None]
        scores = [score for one in found for score in one.token_scores]
        total = sum(one.log_probability for one in found)
        length = sum(len(one.tokens) + one.ended for one in found)
        rivals = [
            [(tokenizer.pieces([token])[0], score) for token, score in beside]
            for one in found
            for beside in one.rivals or ()
        ]
        return Candidate(
            text=line.put_together("" if one is None else tokenizer.decode(one.tokens) for one in parts),
            score=found[0].score if len(found) == 1 else total / max(length, 1) ** self.options.length_penalty,
            tokens=[piece for one in found for piece in tokenizer.pieces(marked(one))],
            token_scores=scores,
            log_probability=total,
            rivals=rivals if self.options.rivals else None,
        )

    def alignment(self, line: Line, parts: Sequence[Hypothesis | None]) -> list[Link]:
        """Links between the words of a line and of its translation."""
        links: list[Link] = []
        source_words = target_words = 0  # of the parts before
        before = ""
        for place, (ids, one) in enumerate(zip(line.parts, parts, strict=True)):
            if one is None:
                continue
            kept = ids[: self.longest_source]
            output = self.tokenizers.target.decode(one.tokens)
            if place and before:
                # Where no blank stands between two parts, a word goes on in the second.
                source_words -= line.spans[place - 1][1] == line.spans[place][0]
                target_words -= not line.between(place, before[-1:], output[:1])
            of_source = word_numbers(self.tokenizers.source, kept)
            of_target = word_numbers(self.tokenizers.target, one.tokens)
            assert one.attention is not None
            links += [
                (source + source_words, target + target_words)
                for source, target in word_alignment(one.attention, of_source, of_target)
            ]
            source_words += max(of_source, default=-1) + 1
            target_words += max(of_target, default=-1) + 1
            before = output
        return links

    def warnings(self, line: Line, parts: Sequence[Hypothesis | None], text: str, expected: Expected) -> list[str]:
        """What looks wrong about a translation; see `checks.WARNINGS`."""
        pairs = [(ids, one.tokens) for ids, one in zip(line.parts, parts, strict=True) if one is not None]
        signs = {
            "sentence-cut": line.within > 0,
            "repetition": any(loops(source, output) for source, output in pairs),
            "length-ratio": any(odd_length(len(source), len(output)) for source, output in pairs),
            "forbidden-phrase": any(begins_word(phrase, text) for phrase in expected.forbidden),
            "missing-phrase": not all(phrase in text for phrase in expected.required),
        }
        return [name for name, seen in signs.items() if seen]


def marked(output: Hypothesis) -> list[int]:
    """The tokens of an output, the end mark last when it ended by itself."""
    return [*output.tokens, EOS] if output.ended else list(output.tokens)


def begins_word(phrase: str, text: str) -> bool:
    """Whether a phrase stands in the text, from the beginning of a word on."""
    return re.search(rf"(?<!\S){re.escape(phrase)}", text) is not None
