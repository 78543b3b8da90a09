"""The model of the confidence of a run, fitted once its translator is trained."""

from __future__ import annotations

from dataclasses import replace

from bitext.files import write_atomically
from manyheads.checkpoint import RunDirectory, as_json, saving
from manyheads.data.sampler import evenly
from manyheads.data.training_text import held_out
from manyheads.evaluation.scores import metrics
from manyheads.inference.translation.confidence import CONFIDENCE, MIN_PAIRS, fit_confidence, measure
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener

_MOST_PAIRS = 200  # validation pairs that the confidence is fitted on


def store_confidence(run: RunDirectory, listener: Listener) -> None:
    """Fit the model of the confidence on validation text, and write it into a trained run.

    At most `training.valid_sentences` pairs of all directions are translated, and 200; with less than 20 nothing is
    written.
    """
    config = run.config()
    views = config.for_directions()
    most = min(_MOST_PAIRS, config.training.valid_sentences) // len(views)
    valid = [(view, held_out(view, "valid")) for view in views]
    chosen = [(view, [pairs[index] for index in evenly(len(pairs), most)]) for view, pairs in valid]
    total = sum(len(pairs) for _, pairs in chosen)
    if total < MIN_PAIRS:
        return
    translator, chrf = Translator.load(run.path, device=config.training.device), metrics("none")["chrf"]
    measured, scores = [], []
    with listener.phase("fitting the confidence", total, "sentences") as advance:
        for view, pairs in chosen:
            own, sources = replace(translator, config=view), [pair.source for pair in pairs]
            results = translate_in_groups(own, sources, advance)
            for pair, line, result in zip(pairs, own.splitter().lines(sources), results, strict=True):
                if result.hypotheses and result.hypotheses[0].token_scores:
                    measured.append(measure(result.hypotheses[0].token_scores, line.parts, translator.sources))
                    scores.append(chrf.sentence_score(result.translation, [pair.target]).score / 100)
    if len(measured) >= MIN_PAIRS:
        with saving("the model of the confidence", run.path):
            write_atomically(run.path / CONFIDENCE, as_json(fit_confidence(measured, scores).to_json()))
