"""Runs are loaded with the settings of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.errors import UsageError
from manyheads.inference.translation.translator import Translator
from manyheads.serving import models as module
from manyheads.serving.models import Models, ServedRun, _load_model, _make_detector
from manyheads.serving.settings import ServeSettings
from manyheads.text.languages import make_profile

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"


@pytest.mark.parametrize("beam", [None, 1, 3])
def test_a_translator_searches_with_the_beam_of_the_settings_or_else_of_the_run(beam: int | None) -> None:
    own = Translator.load(GOLDEN, device="cpu")
    served = _load_model(GOLDEN, ServeSettings(beam=beam, device="cpu"))
    assert isinstance(served, Translator)
    size = beam or own.config.search.beam_size
    assert served.config.search.beam_size == size
    (result,) = served.translate(["Ein Hund läuft ."], n_best=size)
    assert len(result.hypotheses) == size


@pytest.mark.parametrize(
    ("served", "pairs"),
    [
        ("zh-Hans>en en>zh", {"zh>en": "zh-Hans>en", "zh-CN>en-US": "zh-Hans>en", "en>zh-SG": "en>zh"}),
        ("zh-Hans>en en>zh", {"zh-TW>en": None, "en>zt": None, "zh>zh": None, "ja>en": None}),
        ("en>zh-Hant en>zho_Hans", {"eng>zh-TW": "en>zh-Hant", "en>zh": "en>zho_Hans", "en>yue": None}),
        ("de>no de>pt-BR", {"ger>nb": "de>no", "de>nn": None, "de>pb": "de>pt-BR", "de>pt": "de>pt-BR"}),
    ],
)
def test_a_translator_is_found_by_codes_in_any_spelling(served: str, pairs: dict[str, str | None]) -> None:
    own = Translator.load(GOLDEN, device="cpu")
    models = Models(translators={split_pair(pair): own for pair in served.split()})
    for asked, found in pairs.items():
        assert models.pair(*split_pair(asked)) == (found and split_pair(found)), asked


def split_pair(text: str) -> tuple[str, str]:
    source, target = text.split(">")
    return source, target


def test_two_codes_of_a_language_are_detected_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    german, english = make_profile(["Ein Hund läuft."]), make_profile(["A dog runs."])
    profiles = {"there": {"de": german, "en": english}, "back": {"eng": english, "deu_Latn": german}}
    monkeypatch.setattr(module, "languages_of", lambda run: profiles[run.path.name])
    own = Translator.load(GOLDEN, device="cpu")
    models = Models(
        runs={name: ServedRun(name, Path(name), own, {}) for name in profiles},
        translators={("de", "en"): own, ("eng", "deu_Latn"): own},
    )
    detector = _make_detector(models, lambda line: None)
    assert set(detector.profiles) == {"de", "eng"}
    assert detector.detect("Ein Hund")[0][0] == "de"
    assert detector.detect("A dog")[0][0] == "eng"


def test_two_translators_of_one_pair_are_refused_however_it_is_written() -> None:
    own = Translator.load(GOLDEN, device="cpu")
    models = Models(translators={("deu", "eng_Latn"): own})
    with pytest.raises(UsageError, match="translates de-en, and so does a run before it"):
        models.add(GOLDEN, own)
