"""The source's tokenizer is used for both sides."""

from collections.abc import Iterator
from functools import partial

from transformer_doctor import examine_encoding

PAIRS = [
    ("ein hund läuft", "a dog runs"),
    ("eine katze schläft", "a cat sleeps"),
    ("zwei hunde spielen", "two dogs play"),
    ("ein kind liest", "a child reads"),
]


class Words:
    """Tokenizer of whole words; words that are not in its training text become <unk>."""

    def __init__(self, lines: list[str]) -> None:
        self.words = ["<unk>", *dict.fromkeys(word for line in lines for word in line.split())]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return [self.words.index(word) if word in self.words else 0 for word in text.split()]

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""
        return " ".join(self.words[token] for token in ids)


german, english = Words([pair[0] for pair in PAIRS]), Words([pair[1] for pair in PAIRS])


def encode_pair(source: str, target: str) -> tuple[list[int], list[int]]:
    """Return source and target ids of a pair."""
    return german.encode(source), german.encode(target)
    # fix: return german.encode(source), english.encode(target)


def show() -> Iterator[str]:
    """Decode the target ids that the model is trained with."""
    for source, target in PAIRS:
        ids = encode_pair(source, target)[1]
        yield f"{target:15} -> {ids} -> {english.decode(ids)}"


report = partial(examine_encoding, encode_pair, PAIRS, source=german, target=english)
