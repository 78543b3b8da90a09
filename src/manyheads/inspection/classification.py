"""Inspect a classifier while it reads one text.

Shapes: S tokens with both marks, N words, C classes.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from manyheads.inference.classifier import Classifier
from manyheads.inference.inspect_options import InspectOptions, check_length
from manyheads.inference.loading import evaluating
from manyheads.inference.texts import encode_texts
from manyheads.inspection.common import neighbours, text_of, without_each_word
from manyheads.tensors.capture import capture
from manyheads.tensors.examples import make_texts
from manyheads.text.tokenizer import BOS, EOS
from manyheads.views.documents import ClassificationInspection
from manyheads.views.parts import ClassProbability, ModelFacts, Occluded, Occlusion

_DEFAULTS = InspectOptions()
_MIN_PROBABILITY = 1e-300  # smallest probability whose logarithm is taken


def inspect_classification(
    classifier: Classifier, text: str | tuple[str, str], options: InspectOptions = _DEFAULTS
) -> ClassificationInspection:
    """Classify a text as `Classifier.classify` does, and return the computation of the model."""
    options.refuse("classification", "target", "prefix", "beam_size", "padding", "max_tokens", "temperature")
    ids, rows, types = classifier_inputs(classifier, text)
    model, tokenizer = classifier.model, classifier.tokenizer
    with evaluating(model):
        reading = capture(model, rows, types)
    probabilities = reading.logits.double().softmax(-1).tolist()
    best = int(np.argmax(probabilities))
    marked = rows[0].tolist()
    return ClassificationInspection(
        run=options.run,
        model=ModelFacts.of(classifier.config),
        text=text_of(tokenizer, marked, classifier.joined(text), classifier.config.data.language),
        attention=reading.attention,
        label=classifier.labels.names[best],
        classes=tuple(map(ClassProbability, classifier.labels.names, probabilities)),
        pooling=classifier.config.model.pooling,
        occlusion=_leave_out_words(classifier, ids, best) if options.occlusion else None,
        neighbours=neighbours(model.embedding.tokens, marked, tokenizer, options.neighbours),
    )


def classifier_inputs(
    classifier: Classifier, text: str | tuple[str, str]
) -> tuple[list[int], Tensor, Tensor | None]:
    """Return the ids of a text, and the inputs of the model: rows (1, S) with both marks, and types if any."""
    (ids,) = encode_texts(
        classifier.tokenizer.encode, [classifier.joined(text)], classifier.tokenizer.marks_between
    )
    check_length(len([token for token in ids if token != EOS]), "text", classifier.longest)
    model = classifier.model
    with_types = model.config.token_types > 1
    rows, types = make_texts([ids], pad=model.pad, bos=BOS, eos=EOS, with_types=with_types)
    device = next(model.parameters()).device
    return ids, rows.to(device), None if types is None else types.to(device)


def _leave_out_words(classifier: Classifier, ids: list[int], label: int) -> Occlusion:
    """Return the drop in log-probability of each class, and the best class, for each word left out."""
    names = classifier.labels.names
    words, rows = without_each_word(classifier.tokenizer, ids)
    probabilities = classifier.probabilities([ids, *rows])  # (1 + N, C)
    logs = np.log(np.maximum(probabilities, _MIN_PROBABILITY))
    drops = logs[:1] - logs[1:]
    assert all(math.isfinite(value) for value in drops.flatten())
    return Occlusion(
        names,
        tuple(
            Occluded(word, float(drop[label]), tuple(drop.tolist()), names[int(row.argmax())])
            for word, drop, row in zip(words, drops, probabilities[1:], strict=True)
        ),
    )
