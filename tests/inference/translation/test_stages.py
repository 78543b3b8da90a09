"""Stages of a translation: everything else runs without any one of them, and a new one takes part in the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import FrozenInstanceError, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from manyheads.config.schema import Config
from manyheads.inference.translation.confidence import Confidence, ConfidenceModel
from manyheads.inference.translation.directions import Direction
from manyheads.inference.translation.literals import Placeholders
from manyheads.inference.translation.match_source import MatchSource
from manyheads.inference.translation.options import Phrases
from manyheads.inference.translation.output_checks import BrokenCharacters, LineChecks
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Part, Stage
from manyheads.inference.translation.terms import Terms
from manyheads.inference.translation.translator import STAGES, WARNINGS, Translator
from manyheads.inference.translation.unlike_training import SourceModel, UnlikeTraining
from manyheads.search.interface import Hypothesis, make_hypothesis
from manyheads.search.options import Constraints, SearchOptions
from manyheads.text.reserved import PLACEHOLDERS, language_symbol
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.text.training import train_tokenizers

TEXTS = ["Der Hund bellt, die Katze auch.", "The dogs bark, the cats do. A dog? no no no no"]
SYMBOL = language_symbol("en")
OPTIONS = SearchOptions(beam_size=1, split="sentences", match_source=True)


class CopyingEngine:
    """An engine whose outputs are the prefix, the source or its entry of `changes`, and the required phrases."""

    longest = 99

    def __init__(self, tokenizers: TokenizerPair, changes: dict[str, list[int]]) -> None:
        self.tokenizer, self.changes = tokenizers.source, changes
        self.searched: list[tuple[str, Constraints]] = []

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, constraints: Sequence[Constraints], *_: Any
    ) -> list[list[Hypothesis]]:
        """Return one output a row."""
        return [[self.output(row, own)] for row, own in zip(rows, constraints, strict=True)]

    def output(self, row: Sequence[int], constraints: Constraints) -> Hypothesis:
        """Return the output of a row."""
        text = self.tokenizer.decode(row)
        self.searched.append((text, constraints))
        required = [token for phrase in constraints.required for token in phrase]
        tokens = [*constraints.prefix, *self.changes.get(text, row), *required, EOS]
        if EOS in constraints.prefix:  # a translation that is scored
            tokens = [*constraints.prefix]
        return make_hypothesis(tokens, [-0.5] * len(tokens), ended=True, length_penalty=1.0)

    def stream(self, row: Sequence[int], *_: Any) -> Iterator[int]:
        """Yield the source."""
        yield from (*row, EOS)


def make_translator(**fields: Any) -> tuple[Translator, CopyingEngine]:
    """Return a translator in which every stage has something to do, and its engine."""
    reserved = [*PLACEHOLDERS, SYMBOL]
    config = Config.model_validate(
        {"data": {"source": "de", "target": "en"}, "tokenizer": {"vocab_size": 320, "reserved": reserved},
         "search": {"copy_literals": True}},
    )  # fmt: skip
    tokenizers = train_tokenizers(config.tokenizer, TEXTS, TEXTS, "de", "en")
    tokenizer = tokenizers.source
    words = tokenizer.encode(["A dog.", "no " * 30])
    broken = [*tokenizer.encode(["cat"])[0], tokenizer.pieces(range(tokenizer.size)).index("<0xE2>")]
    engine = CopyingEngine(tokenizers, {"Ein Hund?": words[0], "Nein": words[1], "Katze": broken})
    sources = SourceModel([1] * tokenizer.size, [4, 5, 1], 0.0, [-1.0, -1.0])  # every text is unlike these
    confidence = ConfidenceModel(0.9, (0.0, 0.0, 0.0, 0.0), 0.0, (0.3, 0.5))
    return Translator(config, tokenizers, engine, sources, confidence, trained=False, **fields), engine


# Effect of each stage on the translations of the lines below, and on the searches.
LINES = ["Der Hund bellt.", "Ein {a} Hund", "Die Katze auch.", "Ein Hund?", "Nein", "Katze"]
EFFECTS: dict[type[Stage], Callable[[list[Translation], CopyingEngine], bool]] = {
    Direction: lambda found, engine: "untrained-direction" in found[0].warnings,
    UnlikeTraining: lambda found, engine: "unlike-training" in found[0].warnings,
    Placeholders: lambda found, engine: (found[1].translation, found[1].sentences) == ("Ein {a} Hund", 1),
    LineChecks: lambda found, engine: {"repetition", "length-ratio"} <= {*found[4].warnings},
    Phrases: lambda found, engine: found[2].translation.startswith("The"),
    Terms: lambda found, engine: "bark" in found[0].translation,
    MatchSource: lambda found, engine: found[3].translation == "A dog?",
    BrokenCharacters: lambda found, engine: "broken-character" in found[5].warnings,
    Confidence: lambda found, engine: found[0].confidence_level == "low",
}


@pytest.mark.parametrize("removed", [None, *STAGES])
def test_without_one_stage_everything_else_still_runs(removed: type[Stage] | None) -> None:
    translator, engine = make_translator(stages=tuple(stage for stage in STAGES if stage is not removed))
    prefixes, required = ["", "", "The", "", "", ""], [["bark"], [], [], [], [], []]
    found = translator.translate(LINES, prefixes=prefixes, required=required, options=OPTIONS)
    assert [stage for stage in STAGES if not EFFECTS[stage](found, engine)] == [removed] * (removed is not None)
    begins = {constraints.prefix[:1] == translator.prefix for _, constraints in engine.searched}
    assert begins == {removed is not Direction}
    assert all(SYMBOL not in translation.hypotheses[0].tokens for translation in found)
    assert ["".join(translator.stream(text)) for text in LINES] == LINES
    assert [translation.translation for translation in translator.score(LINES, TEXTS * 3)] == TEXTS * 3


def test_the_warnings_of_all_stages_have_their_order_and_meaning() -> None:
    assert list(WARNINGS) == [
        "untrained-direction", "unlike-training", "sentence-cut", "repetition", "length-ratio", "forbidden-phrase",
        "missing-phrase", "forced-term", "broken-character", "low-confidence",
    ]  # fmt: skip
    translator, _ = make_translator()
    options = replace(OPTIONS, min_confidence=0.5)
    (found,) = translator.translate(["Nein"], forbidden=[["no"]], options=options)
    unseen = {"sentence-cut", "missing-phrase", "forced-term", "broken-character"}
    assert found.warnings == [name for name in WARNINGS if name not in unseen]


def test_constraints_are_for_all_parts_of_a_line_but_prefix_and_required_phrases_for_the_first() -> None:
    translator, engine = make_translator()
    translator.translate(
        ["Der Hund bellt. Ein Hund?"], prefixes=["The"], forbidden=[["do"]], required=[["bark"]], options=OPTIONS
    )
    first, second, forced = (constraints for _, constraints in engine.searched)
    assert [text for text, _ in engine.searched] == ["Der Hund bellt.", "Ein Hund?", "Der Hund bellt."]
    prefix, required = (tuple(ids) for ids in translator.tokenizers.target.encode(["The", "bark"]))
    assert (first.prefix, second.prefix, forced.prefix) == (
        (*translator.prefix, *prefix),
        translator.prefix,
        (*translator.prefix, *prefix),
    )
    assert (first.required, second.required, forced.required) == ((), (), (required,))
    assert first.forbidden == second.forbidden == forced.forbidden != ()


class Twice(Stage):
    """A stage that wants every part with a dog twice."""

    warnings: ClassVar = {"twice": "a part was translated twice"}

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Forbid a token."""
        return [draft.constrained(partial(replace, forbidden=((7,),))) for draft in drafts]

    def accepts(self, draft: Draft, part: int) -> bool:
        """Return whether a part has no dog, or is there twice."""
        return "Hund" not in draft.line.part_text(part) or draft.parts[part].source != draft.line.parts[part]

    def change(self, draft: Draft, parts: Sequence[int]) -> Draft:
        """Write the source of the parts twice."""
        changed = [Part(part.source * 2) if number in parts else part for number, part in enumerate(draft.parts)]
        return replace(draft, parts=tuple(changed))

    def writer(self, draft: Draft, part: int) -> Callable[[str], str]:
        """Return the function that writes capitals."""
        return str.upper

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        return translation.with_warnings({"twice": "HUND" in translation.translation})


def test_a_new_stage_takes_part_in_the_search() -> None:
    translator, engine = make_translator(stages=(*STAGES, Twice))
    dogs, cats = translator.translate(["die Katze auch. Der Hund bellt.", "die Katze auch."], options=OPTIONS)
    assert dogs.translation == "DIE KATZE AUCH. DER HUND BELLT. DER HUND BELLT."
    assert cats.translation == "DIE KATZE AUCH."
    assert ("twice" in dogs.warnings, "twice" in cats.warnings) == (True, False)
    searched = ["die Katze auch.", "Der Hund bellt.", "die Katze auch.", "Der Hund bellt. Der Hund bellt."]
    assert [text for text, _ in engine.searched] == searched
    assert all(constraints.forbidden == ((7,),) for _, constraints in engine.searched)


def test_parts_with_required_phrases_are_searched_together_once_no_others_are_left() -> None:
    translator, engine = make_translator(stages=(*STAGES, Twice))
    texts = ["Die Katze auch.", "Der Hund bellt.", "Katze"]
    translator.translate(texts, required=[["bark"], [], ["cats"]], options=OPTIONS)
    last = ["Der Hund bellt. Der Hund bellt.", "Die Katze auch.", "Katze"]
    assert [text for text, _ in engine.searched] == [*texts, *last]


def test_a_translator_is_not_changed_but_replaced() -> None:
    translator, _ = make_translator()
    with pytest.raises(FrozenInstanceError):
        translator.trained = True  # type: ignore[misc]
    assert replace(translator, trained=True).trained
    assert not translator.trained
