"""Make mutated copies of an exported page: of the texts of its model, and of the whole file."""

from __future__ import annotations

import json
import random
import re
import string
from typing import Any

Splice = tuple[int, int, str]
LETTERS = string.ascii_letters + string.digits + "+/="
CHANGES = ("flip", "cut", "insert", "swap", "repeat")
ELEMENT = re.compile(
    r'<script type="[a-z]+/[a-z]+" (?:id|class)="manyheads-(worker|model|tensors)"[^>]*>(.*?)</script>', re.DOTALL
)


def model_texts(document: str) -> dict[str, Any]:
    """Return the texts of the elements that hold the model: worker, head, tensors."""
    texts: dict[str, list[str]] = {"worker": [], "model": [], "tensors": []}
    for name, text in ELEMENT.findall(document):
        texts[name].append(text)
    return {"worker": texts["worker"][0], "head": texts["model"][0], "tensors": texts["tensors"]}


def splices(text: str, rng: random.Random, alphabet: str = LETTERS) -> list[Splice]:
    """Return one to four random changes of a text, from the last position to the first."""
    points = sorted((rng.randrange(len(text)) for _ in range(rng.choice((1, 1, 2, 4)))), reverse=True)
    return [change for start in points for change in splice(text, start, rng, alphabet)]


def splice(text: str, start: int, rng: random.Random, alphabet: str) -> list[Splice]:
    """Return a random change at a position of a text."""
    kind = rng.choice(CHANGES)
    length = rng.choice((1, 2, 3, 16, 1000))
    if kind == "flip":
        return [(start, start + 1, rng.choice(alphabet))]
    if kind == "cut":
        return [(start, start + rng.choice((length, len(text))), "")]
    if kind == "insert":
        return [(start, start, "".join(rng.choices(alphabet, k=length)))]
    if kind == "swap":  # with the range that follows
        middle, end = start + length, start + 2 * length
        return [(start, end, text[middle:end] + text[start:middle])]
    return [(start, start, text[start : start + length])]


def mutated_value(value: Any, rng: random.Random) -> Any:
    """Return a copy of a JSON value with one number, text or list replaced."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        return {**value, name: mutated_value(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        index = rng.randrange(len(value))
        return [*value[:index], mutated_value(value[index], rng), *value[index + 1 :]]
    replacements = [0, 1, -1, 3, 7, 30, 2**31, 2**40, 1.5, 1e300, None, "x", "\u2581", [], {}, [[1]], True]
    if isinstance(value, int):
        replacements += [value + 1, value - 1, 2 * value, value + 16, -value]
    return rng.choice([replacement for replacement in replacements if replacement != value])


class ModelMutations:
    """Edits of the model of a page, as `edited.js` applies them."""

    def __init__(self, texts: dict[str, Any]) -> None:
        self.texts = texts
        self.head = json.loads(texts["head"])

    def edits(self, seed: int) -> dict[str, Any]:
        """Return the edits of a seed: of values of the header, of the text of header and engine, or of tensors."""
        rng = random.Random(seed)
        order = list(range(len(self.texts["tensors"])))
        part = rng.choice(("header", "header", "text", "engine", "tensors", "order"))
        head: list[Splice] = []
        tensors: dict[int, list[Splice]] = {}
        if part == "header":
            changed = {**self.head, "header": mutated_value(self.head["header"], rng)}
            head = [(0, len(self.texts["head"]), json.dumps(changed))]
        elif part == "text":
            head = splices(self.texts["head"], rng, string.printable)
        elif part == "engine":
            start = self.texts["head"].index(self.head["wasm"])
            head = [(start + a, start + b, text) for a, b, text in splices(self.head["wasm"], rng)]
        elif part == "tensors":
            index = rng.choice(order)
            tensors[index] = splices(self.texts["tensors"][index], rng)
        else:
            order = rng.choice((order[1:], order[:-1], [*order, order[-1]], rng.sample(order, len(order))))
        return {"part": part, "head": head, "tensors": tensors, "order": order}


def mutated_file(data: bytes, seed: int) -> bytes:
    """Return the bytes of a file with one to four changes: half of them beside a tag, the others anywhere."""
    rng = random.Random(seed)
    text = data.decode("latin-1")
    alphabet = "".join(map(chr, range(256)))
    tags = [match.start() for match in re.finditer("</?(?:script|style|meta|body|head|html|div)", text)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(text)) if rng.random() < 0.5 else rng.choice(tags) + rng.randrange(40)
        for first, last, inserted in splice(text, min(start, len(text) - 1), rng, alphabet):
            text = text[:first] + inserted + text[last:]
    return text.encode("latin-1")
