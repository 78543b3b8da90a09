"""Two tokenizers, and the one for the source is used for both sides."""

from collections.abc import Iterator
from functools import partial

from manyheads.doctor import examine_encoding

PAIRS = [
    ("ein hund läuft", "a dog runs"),
    ("eine katze schläft", "a cat sleeps"),
    ("zwei hunde spielen", "two dogs play"),
    ("ein kind liest", "a child reads"),
]


class Words:
    """A word is a number; what was not in the text it was made of is <unk>."""

    def __init__(self, lines: list[str]) -> None:
        self.words = ["<unk>", *dict.fromkeys(word for line in lines for word in line.split())]

    def encode(self, text: str) -> list[int]:
        """Text -> ids."""
        return [self.words.index(word) if word in self.words else 0 for word in text.split()]

    def decode(self, ids: list[int]) -> str:
        """Ids -> text."""
        return " ".join(self.words[token] for token in ids)


german, english = Words([pair[0] for pair in PAIRS]), Words([pair[1] for pair in PAIRS])


def encode_pair(source: str, target: str) -> tuple[list[int], list[int]]:
    """What training is fed."""
    return german.encode(source), german.encode(target)
    # fix: return german.encode(source), english.encode(target)


def show() -> Iterator[str]:
    """What the model is taught to write."""
    for source, target in PAIRS:
        ids = encode_pair(source, target)[1]
        yield f"{target:15} -> {ids} -> {english.decode(ids)}"


report = partial(examine_encoding, encode_pair, PAIRS, source=german, target=english)
