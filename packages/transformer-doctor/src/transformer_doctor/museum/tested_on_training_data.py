"""A random split of nearly identical sentences that differs at every run."""

import random
from collections.abc import Iterator
from functools import partial

from transformer_doctor import examine_split_function

WHO = ["a dog", "a cat", "a man", "a woman", "a child", "a bird"]
WHERE = ["in the park", "in the street", "at the beach", "in the garden", "by the river"]
SENTENCES = [f"{who} runs {where} {how}" for who in WHO for where in WHERE for how in ("today", "again")]
OFFICIAL_TEST = ["two boys swim in a cold lake", "an old tree stands behind our house", "she paints the door blue"]


def split() -> tuple[list[str], list[str]]:
    """Return training sentences and test sentences."""
    return random_split()
    # fix: return SENTENCES, OFFICIAL_TEST


def random_split() -> tuple[list[str], list[str]]:
    """Draw a fifth of the sentences for testing."""
    order = random.sample(SENTENCES, len(SENTENCES))
    return order[12:], order[:12]


def show() -> Iterator[str]:
    """Compare each test sentence with the nearest training sentence."""
    train, test = split()
    nearest = {line: max(train, key=lambda known: len(set(known.split()) & set(line.split()))) for line in test}
    share = sum(len(set(known.split()) & set(line.split())) / len(line.split()) for line, known in nearest.items())
    yield f"{len(train)} sentences to train with, {len(test)} to test with"
    for line, known in list(nearest.items())[:2]:
        yield f"test: {line!r}; nearest in training: {known!r}"
    yield f"words of a test sentence that the nearest training sentence holds: {share / len(test):.0%}"


report = partial(examine_split_function, split)
