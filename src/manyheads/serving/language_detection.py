"""Language detection among the served languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.interop.ctranslate2 import is_export
from manyheads.runs.corpus import languages_of
from manyheads.text.identification import LanguageProfile, confidences, has_letters

__all__ = ["LanguageConfidence", "LanguageDetector", "make_detector"]

LanguageConfidence = tuple[str, float]  # language code, confidence in percent


class LanguageDetector:
    """Detects languages by character n-gram profiles of the runs' training texts.

    Attributes:
        profiles: by language code.
        fallback: language returned with confidence 0 where no language can be detected.
    """

    def __init__(self, profiles: Mapping[str, LanguageProfile] | None = None, fallback: str = "en") -> None:
        self.profiles = profiles or {}
        self.fallback = fallback

    def detect(self, text: str) -> Sequence[LanguageConfidence]:
        """Return languages with their confidence, the most probable first; at least one."""
        shares = confidences(text, self.profiles) if has_letters(text) else []
        percents = [(language, round(100 * share, 1)) for language, share in shares]
        return [(language, percent) for language, percent in percents if percent > 0] or [(self.fallback, 0.0)]


def make_detector(runs: Sequence[Path], languages: Sequence[str], log: Callable[[str], None]) -> LanguageDetector:
    """Return a detector for the languages of some runs; counts of a language in several runs are added up.

    Args:
        runs: run directories; exported folders are skipped, as they have no profile.
        languages: codes of the served languages.
        log: gets a warning where a language has no profile.
    """
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    for run in runs:
        if is_export(run) or RunDirectory.existing(run).config().task != "translation":
            continue
        for language, profile in languages_of(RunDirectory(run)).items():
            counts[language].update(profile.counts)
    profiles = {language: LanguageProfile(grams) for language, grams in counts.items() if grams}
    missing = [language for language in languages if language not in profiles]
    if missing:
        log(
            f"languages cannot be detected: no run says what {', '.join(missing)} looks like (it was made by an "
            "older version, or elsewhere). Clients that ask for source = auto get the first language, confidence 0."
        )
        profiles = {}
    fallback = "en" if "en" in languages or not languages else languages[0]
    return LanguageDetector(profiles, fallback)
