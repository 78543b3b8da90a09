"""Generated pairs of the folder samples, without and with artificial defects."""

from __future__ import annotations

import lzma
from pathlib import Path

FRENCH = "Un homme est dans la rue et il parle avec une femme qui est sur le pont numéro {}.".format


def clean_pairs(count: int = 1_500) -> list[tuple[str, str]]:
    """Return German-English pairs without repetitions."""
    return sample("de-en")[:count]


def sample(name: str) -> list[tuple[str, str]]:
    """Return the pairs of a sample, de-en or ko-en."""
    text = lzma.decompress((Path(__file__).parent / "samples" / f"{name}.tsv.xz").read_bytes()).decode()
    return [(source, target) for source, target in (line.split("\t") for line in text.splitlines())]


def pairs_with_defects(count: int = 1_500) -> tuple[list[tuple[str, str]], dict[int, str]]:
    """Return pairs of which every tenth has a defect, and the reason to remove each of those by index."""
    pairs, reasons = clean_pairs(count), {}
    for index in range(3, count - 1, 10):
        source, target = pairs[index]
        reason = ("copy", "language", "encoding", "cut", "empty")[index // 10 % 5]
        match reason:
            case "copy":
                pairs[index] = (source, source)
            case "language":
                pairs[index] = (
                    source,
                    FRENCH(["un", "deux", "trois", "quatre", "cinq", "six", "sept"][index % 7] * (index % 3 + 1)),
                )
            case "encoding":
                pairs[index] = ("Schöne Grüße aus Köln für dich".encode().decode("latin-1") + source, target)
            case "cut":
                pairs[index] = (source, " ".join(target.split()[:2]).rstrip(".!?,"))
            case "empty":
                pairs[index] = (source, "  ")
        reasons[index] = reason
    return pairs, reasons
