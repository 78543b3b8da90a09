"""Assembly of the hypotheses of a search into translations: texts of lines and word alignments.

A word is a string between blanks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from manyheads.inference.translation.result import Candidate, Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.search.interface import Hypothesis, length_divisor
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import EOS, Tokenizer, TokenizerPair

Decode = Callable[[Tokenizer, Sequence[int]], str]
Link = tuple[int, int]  # numbers of a source word and a target word, from 0


class Assembler:
    """Builder of the translations of lines from the outputs of their parts.

    Args:
        tokenizers: tokenizers of source and target.
        options: complete options of the search.
        longest_source: tokens at which sources are cut.
        stages: stages of the call, which may rewrite the outputs and add to the translations.
    """

    def __init__(
        self, tokenizers: TokenizerPair, options: SearchOptions, longest_source: int, stages: Sequence[Stage] = ()
    ) -> None:
        self.tokenizers = tokenizers
        self.options = options
        self.longest_source = longest_source
        self.stages = stages

    def translation(self, draft: Draft) -> Translation:
        """Return the translation of a line.

        The candidate of rank k of a line of several parts consists of the k-th output of each part, or of the last
        output of a part that has fewer.
        """
        line, outputs = draft.line, draft.outputs
        if not outputs:
            copied = [Candidate(line.text, 0.0, [], [], 0.0)] if line.text else []
            links = pharaoh(_copied_links("", "", line.text)) if self.options.alignment and copied else None
            return Translation(line.text, copied, truncated=False, alignment=links)
        ranks = range(min(self.options.n_best, max(map(len, outputs))))
        by_rank = [[hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in outputs] for rank in ranks]
        cut = any(len(ids) > self.longest_source for ids in line.parts)
        translation = Translation(
            source=line.text,
            hypotheses=[self.candidate(draft, parts) for parts in by_rank],
            truncated=cut or not all(output.ended for output in draft.best),
            alignment=pharaoh(self.alignment(draft)) if self.options.alignment else None,
            sentences=len(line.parts),
        )
        for stage in self.stages:
            translation = stage.after(draft, translation)
        return translation

    def candidate(self, draft: Draft, outputs: Sequence[Hypothesis]) -> Candidate:
        """Join an output of each part of a line to one candidate."""
        tokenizer = self.tokenizers.target
        texts = [self.part_translation(draft, part, output) for part, output in enumerate(outputs)]
        scores = [score for output in outputs for score in output.token_scores]
        total = sum(output.log_probability for output in outputs)
        length = sum(len(output.tokens) + output.ended for output in outputs)
        alternatives = [
            [(tokenizer.pieces([token])[0], score) for token, score in token_alternatives]
            for output in outputs
            for token_alternatives in output.alternatives or ()
        ]
        return Candidate(
            text=draft.line.join(texts),
            score=outputs[0].score
            if len(outputs) == 1
            else total / length_divisor(length, self.options.length_penalty),
            tokens=[piece for output in outputs for piece in tokenizer.pieces(with_end_mark(output))],
            token_scores=scores,
            log_probability=total,
            alternatives=alternatives if self.options.alternatives else None,
        )

    def writers(self, draft: Draft, part: int) -> list[Callable[[str], str]]:
        """Return the functions of the stages that rewrite the outputs of a part."""
        return [writer for stage in self.stages if (writer := stage.writer(draft, part))]

    def part_translation(self, draft: Draft, part: int, output: Hypothesis) -> str:
        """Return the translation of a part of a line, without broken characters."""
        target = self.tokenizers.target
        tokens, _ = target.whole_characters(output.tokens, draft.line.part_text(part))
        text = draft.line.decode(part, target, tokens)
        for write in self.writers(draft, part):
            text = write(text)
        return text

    def alignment(self, draft: Draft) -> list[Link]:
        """Return the links between the words of a line and those of its translation."""
        line, links = draft.line, list[Link]()
        end, before = 0, ""  # end of the previous parts in the line, and their translation
        for index, (ids, output) in enumerate(zip(line.parts, draft.best, strict=True)):
            start, stop = line.spans[index]
            text = self.part_translation(draft, index, output)
            gap = line.between(index, before[-1:], text[:1])
            links += _copied_links(line.text[:end], before, gap)
            before += gap
            source, target = _next_word(line.text[:start], line.text[start:stop]), _next_word(before, text)
            decode = partial(line.decode, index)
            of_source = word_numbers(self.tokenizers.source, ids[: self.longest_source], decode=decode)
            of_target = word_numbers(self.tokenizers.target, output.tokens, line.part_text(index), decode)
            # a word that is a soft hyphen alone has no token, and a word of the decoded text is one of these
            prepared = self.tokenizers.source.prepare(line.part_text(index).split())
            numbers = [number for number, word in enumerate(prepared) if word] or [0]
            words = len(text.split()) if self.writers(draft, index) else math.inf  # one may remove a mark, a word
            assert output.attention is not None
            links += [
                (source + numbers[min(source_word, len(numbers) - 1)], target + target_word)
                for source_word, target_word in word_alignment(output.attention, of_source, of_target)
                if target_word < words
            ]
            end, before = stop, before + text
        return links + _copied_links(line.text[:end], before, line.text[end:])


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


def word_numbers(
    tokenizer: Tokenizer, ids: Sequence[int], source: str = "", decode: Decode | None = None
) -> list[int]:
    """Return the index of the word that each token belongs to, counted in the decoded text from 0.

    A token that is only a blank belongs to the word before it; a byte belongs to the word of its character. With
    tokenizer.kind = "words", a punctuation mark is a word. A placeholder, which `decode` replaces by its
    literal, belongs to the last word of that. `source`: see `Tokenizer.whole_characters`.
    """
    whole = (tokenizer.whole_characters(ids[: end + 1], source)[0] for end in range(len(ids)))
    texts = [decode(tokenizer, some) if decode else tokenizer.decode(some) for some in whole]
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
