"""Word alignment of a translation and its source, from cross-attention.

A word is a string between blanks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyheads.text.tokenizer import Tokenizer

__all__ = ["Link", "pharaoh", "word_alignment", "word_numbers"]

Link = tuple[int, int]


def word_numbers(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Return the index of the word that each token belongs to, counted in the decoded text from 0.

    A token that is only a blank belongs to the word before it. With tokenizer.kind = "words", a punctuation mark is
    a word.
    """
    counts = [len(tokenizer.decode(ids[: end + 1]).split()) for end in range(len(ids))]
    return [max(0, count - 1) for count in counts]


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
        Pairs (source word, target word), in the order of target words.
    """
    if not source_words or not target_words:
        return []
    weights = np.array(attention, dtype=np.float64)[: len(target_words), : len(source_words)]
    merged = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    np.add.at(merged, (np.array(target_words)[:, None], np.array(source_words)[None]), weights)
    near = merged >= merged.max(axis=1, keepdims=True) - 1e-6
    return [(int(best), target) for target, best in enumerate(near.argmax(axis=1))]


def pharaoh(links: Sequence[Link]) -> str:
    """Format links in the Pharaoh format: "source-target" pairs from 0, separated by blanks."""
    return " ".join(f"{source}-{target}" for source, target in links)
