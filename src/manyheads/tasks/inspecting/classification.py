"""Looks into a classifier while it reads one text.

Shapes: N words, C classes.
"""

from __future__ import annotations

import math

import numpy as np

from manyheads.data.examples import make_texts
from manyheads.inspection.capture import watch_text
from manyheads.inspection.documents import ClassificationInspection
from manyheads.inspection.parts import ClassProbability, Occluded, Occlusion
from manyheads.tasks.classification import Classifier, encode_texts
from manyheads.tasks.inspecting.common import facts, neighbours, text_of, tokens_of
from manyheads.tasks.inspecting.options import InspectOptions, check_length
from manyheads.text.tokenizer import BOS, EOS

__all__ = ["inspect_classification"]

DEFAULTS = InspectOptions()
LEAST = 1e-300  # of a probability whose logarithm is taken


def inspect_classification(
    classifier: Classifier, text: str | tuple[str, str], options: InspectOptions = DEFAULTS
) -> ClassificationInspection:
    """Classify a text as `Classifier.classify` does, and tell what happened inside.

    Raises:
        UsageError: the text is empty, or longer than the model takes or pictures can show.
    """
    options.refuse("classification", "target", "prefix", "beam_size", "padding", "max_tokens")
    joined = classifier.joined(text)
    (ids,) = encode_texts(classifier.tokenizer.encode, [joined], classifier.tokenizer.marks_between)
    check_length(len([token for token in ids if token != EOS]), "text", classifier.longest)
    model, tokenizer = classifier.model, classifier.tokenizer
    with_types = model.config.token_types > 1
    rows, types = make_texts([ids], pad=model.pad, bos=BOS, eos=EOS, with_types=with_types)
    device, was = next(model.parameters()).device, model.training
    model.eval()
    reading = watch_text(model, rows.to(device), None if types is None else types.to(device))
    model.train(was)
    found = reading.logits.double().softmax(-1).tolist()
    best = int(np.argmax(found))
    whole = rows[0].tolist()
    return ClassificationInspection(
        run=options.run,
        model=facts(classifier.config),
        text=text_of(tokenizer, whole, joined, classifier.config.data.language),
        attention=reading.attention,
        label=classifier.labels.names[best],
        classes=tuple(map(ClassProbability, classifier.labels.names, found)),
        pooling=classifier.config.model.pooling,
        occlusion=occluded(classifier, ids, best) if options.occlusion else None,
        neighbours=neighbours(model.embedding.tokens, whole, tokenizer, options.neighbours),
    )


def occluded(classifier: Classifier, ids: list[int], label: int) -> Occlusion:
    """Leave out each word: how much less likely each class is then, and which is the most likely."""
    names = classifier.labels.names
    words = [token.word for token in tokens_of(classifier.tokenizer, ids)]
    numbers = sorted({word for word in words if word is not None})
    rows = [[token for token, word in zip(ids, words, strict=True) if word != number] for number in numbers]
    found = classifier.probabilities([ids, *rows])  # (1 + N, C)
    logs = np.log(np.maximum(found, LEAST))
    drops = logs[:1] - logs[1:]
    assert all(math.isfinite(value) for value in drops.flatten())
    return Occlusion(
        names,
        tuple(
            Occluded(number, float(drops[place, label]), tuple(drops[place].tolist()), names[int(row.argmax())])
            for place, (number, row) in enumerate(zip(numbers, found[1:], strict=True))
        ),
    )
