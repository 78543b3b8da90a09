"""Proof of a tuning: scores of a model before and after, and whether the tuned model may take its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bitext.pairs import Pair
from manyheads.data.sampler import evenly
from manyheads.evaluation import paired_bootstrap
from manyheads.evaluation.scores import metrics
from manyheads.evaluation.verdicts import METRIC_NAMES, shares_nothing
from manyheads.improve.tune_text import TuningText
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener
from manyheads.runs.challenge import challenge_groups, judge_translator

_TITLES = {"held_out": "held-out corrections", "corrections": "corrections trained on", "general": "general text"}
METRICS: tuple[Literal["bleu", "chrf"], ...] = ("bleu", "chrf")
MOST_LOST = 0.3  # BLEU on general text
_MOST_ROW_LOST = 0.01  # of a figure of the challenge lines that was good; one line, where that is more
_MOST_BAD_ROW_LOST = 0.1  # of a figure that was bad before: some lines more or less are chance
_ROUNDING = 1e-9
_LEAST_AGREEMENT = 65.0  # BLEU of the tuned model's outputs against the model's own, where no translations exist
_MOST_LEARNED = 300  # corrections trained on that are translated
_EXAMPLES = 5
_CHALLENGE_WORDS, _CHALLENGE_LINES = 50, 20


def prove(before: Translator, after: Translator, text: TuningText, listener: Listener) -> dict[str, Any]:
    """Translate held-out corrections, general text and challenge lines with both models, and judge the difference.

    Returns:
        Plain values: the scores of each text, examples of general lines that got worse, and the reasons against
        the tuned model; none if it may be used.
    """
    learned = [text.corrections[index] for index in evenly(len(text.corrections), _MOST_LEARNED)]
    texts = {"held_out": text.held_out, "corrections": learned, "general": text.general}
    both = {name: _Both(pairs, *_outputs(name, pairs, (before, after), listener)) for name, pairs in texts.items()}
    language = before.config.data.target
    document = {
        **{name: lines.scores(language) for name, lines in both.items() if lines.pairs},
        "taken_up": {name: lines.taken_up() for name, lines in both.items() if name != "general"},
        "challenge": _challenge(before, after, listener),
        "worse": both["general"].worse(),
    }
    return {**document, "reasons": [*text.doubts, *_reasons(document, own_translations=text.own)]}


def _outputs(
    name: str, pairs: Sequence[Pair], translators: Sequence[Translator], listener: Listener
) -> Iterator[list[str]]:
    sources, title = [pair.source for pair in pairs], _TITLES[name]
    with listener.phase(f"translating {title}", len(pairs) * len(translators), "lines") as advance:
        for translator in translators:
            yield [result.translation for result in translate_in_groups(translator, sources, advance)]


@dataclass(frozen=True)
class _Both:
    """Pairs with the outputs before and after."""

    pairs: Sequence[Pair]
    before: Sequence[str]
    after: Sequence[str]

    def scores(self, language: str) -> dict[str, Any]:
        """Return BLEU and chrF before and after with the paired bootstrap."""
        references = [pair.target for pair in self.pairs]
        found = [
            paired_bootstrap(self.after, self.before, references, metric=metric, language=language)
            for metric in METRICS
        ]
        return {result.metric: {**vars(result), "significant": result.significant} for result in found}

    def taken_up(self) -> dict[str, int]:
        """Count the corrections that change a word, and those whose new words all stand in the new output."""
        changed = right = 0
        for pair, old, new in zip(self.pairs, self.before, self.after, strict=True):
            words = {*pair.target.split()} - {*old.split()}
            changed += bool(words)
            right += bool(words) and words <= {*new.split()}
        return {"changed": changed, "right": right}

    def worse(self) -> list[dict[str, str]]:
        """Return the lines whose chrF fell most."""
        chrf, falls = metrics("none")["chrf"], []
        for pair, old, new in zip(self.pairs, self.before, self.after, strict=True):
            if old != new:
                scores = [chrf.sentence_score(text, [pair.target]).score for text in (old, new)]
                falls.append((scores[1] - scores[0], pair, old, new))
        worst = sorted((fall for fall in falls if fall[0] < 0), key=lambda fall: fall[0])[:_EXAMPLES]
        return [
            {"source": pair.source, "before": old, "after": new, "reference": pair.target}
            for _, pair, old, new in worst
        ]


def _challenge(before: Translator, after: Translator, listener: Listener) -> list[dict[str, Any]]:
    """Return the figures of the challenge lines that have a limit, before and after."""
    config, data = after.config, after.config.data
    # words and sentences of the general text: the model knows those of the corrections as they were written
    general = {"train": data.more[0] if data.more else data.train, "valid": data.test or data.valid}
    config = config.model_copy(update={"data": data.model_copy(update=general)})
    groups = challenge_groups(config, before.tokenizers.source, words=_CHALLENGE_WORDS, lines=_CHALLENGE_LINES)
    judged = [judge_translator(translator, groups, listener) for translator in (before, after)]
    rows = []
    for (group, figures), (_, new_figures) in zip(*judged, strict=True):
        for old, new in zip(figures, new_figures, strict=True):
            if old.limit is not None:
                lost = old.value - new.value if old.limit.least else new.value - old.value
                most = max(_MOST_ROW_LOST if old.good else _MOST_BAD_ROW_LOST, 1 / len(group.cases))
                row = {"group": group.name, "figure": old.name, "before": old.value, "after": new.value}
                rows.append(row | {"worse": lost > most + _ROUNDING})
    return rows


def _reasons(document: Mapping[str, Any], *, own_translations: bool) -> Iterator[str]:
    """Yield the reasons against the tuned model."""
    for name, most in (("general", MOST_LOST), ("held_out", math.inf)):
        if name not in document:
            continue
        bleu = document[name]["bleu"]
        if own_translations and name == "general":
            if bleu["score"] < _LEAST_AGREEMENT:
                yield (
                    f"general text is translated otherwise: BLEU {bleu['score']:.1f} against the outputs of the "
                    f"model, and at least {_LEAST_AGREEMENT:.0f} is usual"
                )
        elif -bleu["difference"] > most or (bleu["difference"] < 0 and bleu["significant"]):
            change = f"({bleu['baseline']:.2f} -> {bleu['score']:.2f})"
            yield f"{_TITLES[name]}: BLEU falls by {-bleu['difference']:.2f} {change}"
    general = document.get("general")
    if general and shares_nothing(general["bleu"]["baseline"], general["chrf"]["baseline"]):
        return  # a model that does not translate yet has nothing to lose on challenge lines
    yield from (
        f"challenge lines: {figure['figure']} {_change(figure)} of {figure['group']}"
        for figure in document["challenge"]
        if figure["worse"]
    )


def _change(figure: Mapping[str, Any]) -> str:
    return f"{figure['before']:.1%} -> {figure['after']:.1%}"


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the proof for people."""
    for name, title in _TITLES.items():
        for result in document.get(name, {}).values():
            low, high = result["interval"]
            yield (
                f"{title}, {result['lines']:,} lines: {METRIC_NAMES[result['metric']]} {result['baseline']:.2f} -> "
                f"{result['score']:.2f}, {result['difference']:+.2f} [{low:+.2f}, {high:+.2f}], "
                f"p = {result['p_value']:.3f} ({result['signature']})"
            )
        if (counts := document["taken_up"].get(name)) and counts["changed"]:
            yield f"  taken up: {counts['right']:,} of {counts['changed']:,} that change a word"
    worse = [figure for figure in document["challenge"] if figure["worse"]]
    yield f"challenge lines: {len(document['challenge'])} figures, {len(worse)} of them worse"
    for figure in worse:
        yield f"  {figure['group']}: {figure['figure']} {_change(figure)}"
    for example in document["worse"] if document["reasons"] else ():
        yield f"  worse: {example['source']}"
        yield from (f"    {name}: {example[name]}" for name in ("before", "after", "reference"))
