"""The directions of a translator of several languages: their symbols, and which one two language codes mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from bitext.languages import match_language
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.search.interface import Hypothesis, best_outputs, without_first
from manyheads.text.reserved import language_symbol


def with_direction(config: Config, source: str, target: str) -> Config:
    """Return the configuration of one direction; the same for a model of one, if no language is named.

    Raises:
        UsageError: as of `choose_direction`.
    """
    if not config.multilingual and not (source or target):
        return config
    return config.for_direction(*choose_direction(config, source, target))


def require_one_direction(config: Config, work: str) -> None:
    """Raise `UsageError` for several directions: the work, such as "tune", is for one."""
    if config.multilingual:
        raise UsageError(f"{work} takes one pair of languages, and there are several: {list_directions(config)}.")


def list_directions(config: Config) -> str:
    """Return the trained directions for a message: "de-en, en-de"."""
    return ", ".join(f"{source}-{target}" for source, target in config.directions)


def choose_direction(config: Config, source: str, target: str) -> tuple[str, str]:
    """Return the languages of a model that two codes mean; an empty code is left to the trained directions.

    The direction need not have been trained, if the model reads the source and writes the target.

    Raises:
        UsageError: the model does not know a language, or several trained directions fit; the message names these.
    """
    trained = config.directions
    known = f"It translates {list_directions(config)}."
    sources, targets = (list(dict.fromkeys(direction[side] for direction in trained)) for side in (0, 1))
    own_source = match_language(source, sources) if source else None
    own_target = match_language(target, targets) if target else None
    if not config.multilingual and ((source and not own_source) or (target and not own_target)):
        raise UsageError(f"the model has one direction, not {source or 'any'} to {target or 'any'}. {known}")
    if source and own_source is None:
        raise UsageError(f'the model does not read "{source}". {known}')
    if target and own_target is None:
        raise UsageError(f'the model does not write "{target}". {known}')
    fitting = [pair for pair in trained if own_source in (None, pair[0]) and own_target in (None, pair[1])]
    if len(fitting) == 1:
        return fitting[0]
    if own_source and own_target:
        if own_source == own_target:
            raise UsageError(f"from {own_source} to {own_target} there is nothing to translate. {known}")
        return own_source, own_target
    names = ", ".join(f"{first}-{second}" for first, second in fitting or trained)
    raise UsageError(f"several directions fit: {names}. Name the {'source' if target else 'target'} language.")


class Direction(Stage):
    """The symbol of the target language before every output, and the warning about an untrained direction."""

    warnings: ClassVar = {
        "untrained-direction": "the model was not trained to translate between these two languages"
    }

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Force the symbol as the beginning of each output."""
        prefix = self.translator.prefix
        return [draft.constrained(partial(replace, prefix=prefix)) for draft in drafts] if prefix else drafts

    def found(self, draft: Draft) -> Draft:
        """Remove the symbol and its scores; the outputs of a beam are ordered anew."""
        size, options = len(self.translator.prefix), draft.options

        def without_symbol(outputs: Sequence[Hypothesis]) -> list[Hypothesis]:
            shorter = [without_first(output, size, options.length_penalty) for output in outputs]
            return shorter if options.sampling else best_outputs(shorter, len(shorter))

        return draft.with_outputs(map(without_symbol, draft.outputs)) if size else draft

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        return translation.with_warnings({"untrained-direction": not self.translator.trained})

    @classmethod
    def reserved_symbols(cls, config: Config) -> Sequence[str]:
        """Return the symbol of each target language."""
        targets = [target for _, target in config.directions] if config.multilingual else []
        return [*dict.fromkeys(map(language_symbol, targets))]
