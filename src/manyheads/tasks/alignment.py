"""Which word of the translation comes from which word of the source.

"Words" are what stands between blanks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyheads.text.tokenizer import Tokenizer

__all__ = ["Link", "pharaoh", "word_alignment", "word_numbers"]

Link = tuple[int, int]


def word_numbers(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """The number of the word that each token belongs to, counted in the text of the tokens, from 0.

    A blank of its own belongs to the word before it. Of tokenizer.kind = "words", a punctuation mark is a word.
    """
    counts = [len(tokenizer.decode(ids[: end + 1]).split()) for end in range(len(ids))]
    return [max(0, count - 1) for count in counts]


def word_alignment(
    attention: Sequence[Sequence[float]], source_words: Sequence[int], target_words: Sequence[int]
) -> list[Link]:
    """For each target word the source word that it looked at most.

    What the tokens of a target word looked at is added up, and so is what the tokens of a source word got. Looks
    at the source's end mark do not count, nor does what the end symbol looked at. Of source words that got the
    same, within 1e-6, the first is taken.

    Args:
        attention: of each target token (T rows or one more) to each source token and the end mark (S + 1).
        source_words: the word of each source token (S).
        target_words: the word of each target token (T).

    Returns:
        (source word, target word), in the order of target words.
    """
    if not source_words or not target_words:
        return []
    weights = np.array(attention, dtype=np.float64)[: len(target_words), : len(source_words)]
    merged = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    np.add.at(merged, (np.array(target_words)[:, None], np.array(source_words)[None]), weights)
    near = merged >= merged.max(axis=1, keepdims=True) - 1e-6
    return [(int(best), target) for target, best in enumerate(near.argmax(axis=1))]


def pharaoh(links: Sequence[Link]) -> str:
    """Links as text: source-target, from 0, a blank between two."""
    return " ".join(f"{source}-{target}" for source, target in links)
