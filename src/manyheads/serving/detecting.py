"""Which of the served languages a text is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.interop.ctranslate2 import is_export
from manyheads.runs.languages import languages_of
from manyheads.text.identification import LanguageProfile, confidences, has_letters

__all__ = ["Detector", "detector_of"]

Sure = tuple[str, float]  # a language and how sure it is, 0 to 100


class Detector:
    """Tells languages apart by the texts that the runs were trained on.

    Attributes:
        fallback: what is answered, with confidence 0, where nothing can be told.
    """

    def __init__(self, profiles: Mapping[str, LanguageProfile] | None = None, fallback: str = "en") -> None:
        self.profiles = profiles or {}
        self.fallback = fallback

    def detect(self, text: str) -> Sequence[Sure]:
        """Languages with their confidence, the surest first; at least one."""
        found = confidences(text, self.profiles) if has_letters(text) else []
        sure = [(language, round(100 * share, 1)) for language, share in found]
        return [(language, share) for language, share in sure if share > 0] or [(self.fallback, 0.0)]


def detector_of(runs: Sequence[Path], languages: Sequence[str], tell: Callable[[str], None]) -> Detector:
    """What tells the languages of some runs apart; a language of several runs has the counts of all of them."""
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    for run in runs:
        if is_export(run) or RunDirectory.existing(run).config().task != "translation":
            continue
        for language, profile in languages_of(RunDirectory(run)).items():
            counts[language].update(profile.counts)
    profiles = {language: LanguageProfile(found) for language, found in counts.items() if found}
    lacking = [language for language in languages if language not in profiles]
    if lacking:
        tell(
            f"languages cannot be detected: no run says what {', '.join(lacking)} looks like (it was made by an "
            "older version, or elsewhere). Clients that ask for source = auto get the first language, confidence 0."
        )
        profiles = {}
    fallback = "en" if "en" in languages or not languages else languages[0]
    return Detector(profiles, fallback)
