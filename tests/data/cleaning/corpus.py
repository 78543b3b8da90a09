"""Built-in pairs with artificial defects."""

from __future__ import annotations

from manyheads.data.builtin import builtin_pairs

FRENCH = "Un homme est dans la rue et il parle avec une femme qui est sur le pont numéro {}.".format


def clean_pairs(count: int = 1_500) -> list[tuple[str, str]]:
    """Return German-English pairs without repetitions."""
    pairs = builtin_pairs("de-en", "train", source="de", target="en")[:count]
    return [(pair.source, pair.target) for pair in pairs]


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
