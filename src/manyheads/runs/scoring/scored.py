"""What a model scores on the test set of its run, as its cards tell it."""

from __future__ import annotations

import re
from itertools import islice

from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.locate import Split
from manyheads.errors import DataError
from manyheads.evaluation.scores import score
from manyheads.interop.opened import OpenedModel
from manyheads.runs.corpus import cleaning, read_split
from manyheads.tasks.translation import Translator

__all__ = ["MOST", "pairs_at_hand", "scored_pairs", "test_scores", "with_scores"]

MOST = 1_000  # sentences
LINE = re.compile(r"^- Scores\b.*\n", re.MULTILINE)


def pairs_at_hand(config: Config, split: Split, most: int) -> list[Pair]:
    """The first pairs of a split, cleaned; none where its text is not on this machine: nothing is fetched."""
    if (config.data.dataset or "").startswith("hf:"):
        return []
    normal = cleaning(config)
    try:
        found = list(islice(read_split(config.data, split, config.task), most))
    except (DataError, OSError):
        return []
    return [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in found]


def scored_pairs(config: Config) -> list[Pair]:
    """The pairs of the test set that scores are taken on."""
    return [pair for pair in pairs_at_hand(config, "test", MOST) if pair.source and pair.target]


def test_scores(opened: OpenedModel) -> str | None:
    """A line for a card: BLEU and chrF by the run's own search, with their signatures; None without the text."""
    config, pairs = opened.config, scored_pairs(opened.config)
    if not pairs:
        return None
    found = Translator(config, opened.tokenizers, opened.model).translate([pair.source for pair in pairs])
    outputs, references = [one.translation for one in found], [pair.target for pair in pairs]
    scores = score(outputs, references, language=config.data.target, protocol=config.evaluation.protocol)
    return (
        f"- Scores on {len(pairs):,} sentences of its test set, beam {config.search.beam_size}: "
        f"BLEU {scores.bleu:.2f} ({scores.signature['bleu']}), chrF {scores.chrf:.2f} ({scores.signature['chrf']})"
    )


def with_scores(card: str, line: str) -> str:
    """A card with this line of scores, in the place of an older one, or before what is to be filled in, or last."""
    bare = LINE.sub("", card)
    before, mark, after = bare.partition("- Intended use")
    return f"{before}{line}\n{mark}{after}" if mark else f"{bare.rstrip()}\n\n{line}\n"
