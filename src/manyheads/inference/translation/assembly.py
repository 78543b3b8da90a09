"""Assembly of the hypotheses of a search into translations: texts of lines, word alignments, warnings.

A word is a string between blanks. The checks that give warnings need no reference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manyheads.inference.translation.confidence import ConfidenceModel, measure
from manyheads.inference.translation.kept_texts import restore
from manyheads.inference.translation.literals import Sentence
from manyheads.inference.translation.match_source import match_source
from manyheads.inference.translation.options import LineConstraints
from manyheads.inference.translation.parts import Line
from manyheads.inference.translation.result import Candidate, Translation
from manyheads.search.interface import Hypothesis, length_divisor
from manyheads.search.options import SearchOptions
from manyheads.text.source_model import SourceModel
from manyheads.text.tokenizer import EOS, Tokenizer, TokenizerPair

Link = tuple[int, int]  # numbers of a source word and a target word, from 0

# Names that `Translation.warnings` may hold -> their meaning.
WARNINGS = {
    "untrained-direction": "the model was not trained to translate between these two languages",
    "unlike-training": "the text is unlike what the model was trained on, and its translation may be wrong",
    "sentence-cut": "a sentence longer than any in training was cut into pieces",
    "repetition": "the translation repeats itself",
    "length-ratio": "the translation is much longer or shorter than its source",
    "forbidden-phrase": "a forbidden phrase came out, spelled in an unusual way",
    "missing-phrase": "a required phrase or the translation of a term did not come out",
    "forced-term": "a required phrase or the translation of a term does not fit into the translation",
    "broken-character": "bytes that form no character were left out, or completed to a character of the source",
    "low-confidence": "left empty, because the confidence is below --min-confidence",
}

_MAX_PERIOD = 16  # tokens of a repeated passage
_MIN_REPETITIONS = 4
_MIN_LOOP_LENGTH = 8  # tokens of all repetitions together


class Assembler:
    """Builder of the translations of lines from the outputs of their parts."""

    def __init__(
        self,
        tokenizers: TokenizerPair,
        options: SearchOptions,
        longest_source: int,
        sources: SourceModel | None = None,
        languages: tuple[str, str] = ("", ""),  # of the source and the target
        *,
        confidence: ConfidenceModel | None = None,
        trained: bool = True,  # whether the model was trained to translate between them
    ) -> None:
        self.confidence = confidence
        self.languages = languages
        self.trained = trained
        self.tokenizers = tokenizers
        self.sources = sources
        self.options = options
        self.longest_source = longest_source

    def translation(
        self, line: Line, outputs: Sequence[Sequence[Hypothesis]], constraints: LineConstraints
    ) -> Translation:
        """Return the translation of a line.

        The candidate of rank k of a line of several parts consists of the k-th output of each part, or of the last
        output of a part that has fewer.

        Args:
            line: the line and its parts.
            outputs: hypotheses of each part, best first; at least one.
            constraints: constraints on the translation, for its warnings.
        """
        ranks = range(max(map(len, outputs), default=0))
        by_rank = [[hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in outputs] for rank in ranks]
        candidates = [self.candidate(line, parts) for parts in by_rank]
        if not by_rank:
            copied = [Candidate(line.text, 0.0, [], [], 0.0)] if line.text else []
            links = pharaoh(_copied_links("", "", line.text)) if self.options.alignment and copied else None
            return Translation(line.text, copied, truncated=False, alignment=links)
        best = by_rank[0]
        cut = any(len(ids) > self.longest_source for ids in line.parts)
        translation = Translation(
            source=line.text,
            hypotheses=candidates,
            truncated=cut or not all(output.ended for output in best),
            alignment=pharaoh(self.alignment(line, best)) if self.options.alignment else None,
            sentences=len(line.parts),
            warnings=self.warnings(line, best, candidates[0].text, constraints),
        )
        return self.with_confidence(translation, line) if self.confidence else translation

    def with_confidence(self, translation: Translation, line: Line) -> Translation:
        """Return a translation with its confidence; without a candidate if it is below `min_confidence`."""
        assert self.confidence is not None
        measures = measure(translation.hypotheses[0].token_scores, line.parts, self.sources)
        confidence = self.confidence.estimate(measures, translation.warnings, truncated=translation.truncated)
        level = self.confidence.level(confidence)
        if confidence < self.options.min_confidence:
            warnings = [*translation.warnings, "low-confidence"]
            translation = replace(translation, hypotheses=[], alignment=None, warnings=warnings)
        return replace(translation, confidence=confidence, confidence_level=level)

    def candidate(self, line: Line, outputs: Sequence[Hypothesis]) -> Candidate:
        """Join the outputs of the parts of a line to one candidate."""
        tokenizer = self.tokenizers.target
        texts = [self.part_translation(line, index, output) for index, output in enumerate(outputs)]
        scores = [score for output in outputs for score in output.token_scores]
        total = sum(output.log_probability for output in outputs)
        length = sum(len(output.tokens) + output.ended for output in outputs)
        alternatives = [
            [(tokenizer.pieces([token])[0], score) for token, score in token_alternatives]
            for output in outputs
            for token_alternatives in output.alternatives or ()
        ]
        return Candidate(
            text=line.join(texts),
            score=outputs[0].score
            if len(outputs) == 1
            else total / length_divisor(length, self.options.length_penalty),
            tokens=[piece for output in outputs for piece in tokenizer.pieces(with_end_mark(output))],
            token_scores=scores,
            log_probability=total,
            alternatives=alternatives if self.options.alternatives else None,
        )

    def whole(self, line: Line, part: int, output: Hypothesis) -> tuple[list[int], int]:
        """Return the tokens of the output of a part without broken characters, and the number of these."""
        return self.tokenizers.target.whole_characters(output.tokens, line.part_text(part))

    def part_translation(self, line: Line, part: int, output: Hypothesis) -> str:
        """Return the translation of a part of a line."""
        tokens = self.whole(line, part, output)[0]
        kept, target = line.kept.get(part), self.tokenizers.target
        text = restore(kept, target, tokens) if kept else target.decode(tokens)
        return match_source(text, line.part_text(part), self.languages) if self.options.match_source else text

    def alignment(self, line: Line, parts: Sequence[Hypothesis]) -> list[Link]:
        """Return the links between the words of a line and those of its translation."""
        links: list[Link] = []
        end, before = 0, ""  # end of the previous parts in the line, and their translation
        for index, (ids, output) in enumerate(zip(line.parts, parts, strict=True)):
            start, stop = line.spans[index]
            text = self.part_translation(line, index, output)
            gap = line.between(index, before[-1:], text[:1])
            links += _copied_links(line.text[:end], before, gap)
            before += gap
            source, target = _next_word(line.text[:start], line.text[start:stop]), _next_word(before, text)
            kept = line.kept.get(index)
            of_source = word_numbers(self.tokenizers.source, ids[: self.longest_source], kept=kept)
            of_target = word_numbers(self.tokenizers.target, output.tokens, line.part_text(index), kept)
            # a word that is a soft hyphen alone has no token, and a word of the decoded text is one of these
            prepared = self.tokenizers.source.prepare(line.part_text(index).split())
            numbers = [number for number, word in enumerate(prepared) if word] or [0]
            words = len(text.split())  # a mark that was a word may be removed by `match_source`
            assert output.attention is not None
            links += [
                (source + numbers[min(source_word, len(numbers) - 1)], target + target_word)
                for source_word, target_word in word_alignment(output.attention, of_source, of_target)
                if not self.options.match_source or target_word < words
            ]
            end, before = stop, before + text
        return links + _copied_links(line.text[:end], before, line.text[end:])

    def warnings(
        self, line: Line, parts: Sequence[Hypothesis], text: str, constraints: LineConstraints
    ) -> list[str]:
        """Return the names of the warnings about a translation; see `WARNINGS`."""
        pairs = [(ids, output.tokens) for ids, output in zip(line.parts, parts, strict=True)]
        signs = {
            "untrained-direction": not self.trained,
            "unlike-training": self.sources is not None and self.sources.is_unlike(line.parts),
            "sentence-cut": line.cut_sentences > 0,
            "repetition": any(_repeats_itself(source, output) for source, output in pairs),
            "length-ratio": any(_unusual_length(len(source), len(output)) for source, output in pairs),
            "forbidden-phrase": any(_begins_word(phrase, text) for phrase in constraints.forbidden),
            "missing-phrase": not all(line.holds(phrase, text) for phrase in constraints.required)
            or not all(line.holds_form(form, text) for part_forms in constraints.forms for form in part_forms),
            "forced-term": any(output.strained for output in parts),
            "broken-character": any(self.whole(line, index, output)[1] for index, output in enumerate(parts)),
        }
        return [name for name, present in signs.items() if present]


def _next_word(before: str, text: str) -> int:
    """Return the index of the first word of a text in the line that it continues; `before` is the line up to it."""
    continued = before and text and not before[-1].isspace() and not text[0].isspace()
    return len(before.split()) - bool(continued)


def _copied_links(source: str, target: str, copied: str) -> list[Link]:
    """Link the words of a text that is copied; `source` and `target` are the lines before it."""
    first_source, first_target = _next_word(source, copied), _next_word(target, copied)
    return [(first_source + word, first_target + word) for word in range(len(copied.split()))]


def with_end_mark(output: Hypothesis) -> list[int]:
    """Return the tokens of an output, with the end mark last if it has one."""
    return [*output.tokens, EOS] if output.ended else list(output.tokens)


def _begins_word(phrase: str, text: str) -> bool:
    return re.search(rf"(?<!\S){re.escape(phrase)}", text) is not None


def word_numbers(
    tokenizer: Tokenizer, ids: Sequence[int], source: str = "", kept: Sentence | None = None
) -> list[int]:
    """Return the index of the word that each token belongs to, counted in the decoded text from 0.

    A token that is only a blank belongs to the word before it; a byte belongs to the word of its character. With
    tokenizer.kind = "words", a punctuation mark is a word. The symbol of a literal of the sentence `kept` belongs
    to the last word of the literal. `source`: see `Tokenizer.whole_characters`.
    """
    whole = (tokenizer.whole_characters(ids[: end + 1], source)[0] for end in range(len(ids)))
    texts = [restore(kept, tokenizer, some) if kept else tokenizer.decode(some) for some in whole]
    counts = [len(text.split()) for text in texts]
    for end in range(len(ids) - 2, -1, -1):
        if ids[end] in tokenizer.byte_values and texts[end] == (texts[end - 1] if end else ""):
            counts[end] = counts[end + 1]
    return [max(0, min(count, counts[-1]) - 1) for count in counts]


def word_alignment(
    attention: Sequence[Sequence[float]], source_words: Sequence[int], target_words: Sequence[int]
) -> list[Link]:
    """Link each target word to the source word with the largest attention weight.

    The attention weights of all tokens of a target word, and on all tokens of a source word, are summed. Attention
    on the source's end mark, and from the target's end mark, is ignored. Of source words with equal weights, within
    1e-6, the first is linked.

    Args:
        attention: weights of each target token (T rows or one more) on each source token and the end mark (S + 1).
        source_words: word index of each source token (S).
        target_words: word index of each target token (T).

    Returns:
        Pairs (source word, target word), in the order of target words; none for a target word without a token.
    """
    if not source_words or not target_words:
        return []
    weights = np.array(attention, dtype=np.float64)[: len(target_words), : len(source_words)]
    merged = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    np.add.at(merged, (np.array(target_words)[:, None], np.array(source_words)[None]), weights)
    near = merged >= merged.max(axis=1, keepdims=True) - 1e-6
    return [(int(near[target].argmax()), target) for target in sorted({*target_words})]


def pharaoh(links: Sequence[Link]) -> str:
    """Format links in the Pharaoh format: "source-target" pairs from 0, separated by blanks."""
    return " ".join(f"{source}-{target}" for source, target in links)


def _max_repetitions(tokens: Sequence[int]) -> int:
    """Return the largest number of times that a passage of at most 16 tokens occurs in a row; 1 is no repetition.

    Only repetitions of at least 8 tokens in all count: "ha ha ha ha" does not.
    """
    most = 1
    for period in range(1, min(_MAX_PERIOD, len(tokens) // 2) + 1):
        run = 0
        for index in range(period, len(tokens)):
            run = run + 1 if tokens[index] == tokens[index - period] else 0
            if run + period >= _MIN_LOOP_LENGTH:
                most = max(most, run // period + 1)
    return most


def _repeats_itself(source: Sequence[int], output: Sequence[int]) -> bool:
    """Return whether an output repeats itself more often than its source does."""
    if max(Counter(output).values(), default=0) < _MIN_REPETITIONS:  # fast exit for most outputs
        return False
    repetitions = _max_repetitions(output)
    return repetitions >= _MIN_REPETITIONS and repetitions > _max_repetitions(source) + 1


def _unusual_length(source: int, output: int) -> bool:
    """Return whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens."""
    return max(source, output) > 3 * min(source, output) + 10
