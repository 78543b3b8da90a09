"""The model cards of classifiers and of encoders that guess hidden tokens."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads import __version__
from manyheads.config.schema import Config
from manyheads.runs.cards.facts import best_value, text_of
from manyheads.training.progress import Progress

__all__ = ["classifier_card", "masked_card"]

CLASSIFIER_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: text-classification
---
# Classifier of {language} text: {labels}

A Transformer encoder trained with manyheads {version}: {layers} layers of width {width}, {positions} positions,
{norm}-norm; {kind} vocabulary of {size}; pooling: {pooling}.

- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}
- Longest text: {longest} tokens, of longer ones only the beginning is read
- Intended use and limits: to be filled in by you

```
manyheads classify DIRECTORY < text.{language}
```
```python
from manyheads import Classifier

Classifier.load("DIRECTORY").classify(["..."])
```
"""


MASKED_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: fill-mask
---
# Encoder of {language} text

A Transformer encoder trained with manyheads {version} to guess hidden tokens: {layers} layers of width {width},
{positions} positions, {norm}-norm; {kind} vocabulary of {size}.

- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}
- Intended use and limits: to be filled in by you

A classifier begins with it:
```
manyheads train CONFIG --set model.init_from=DIRECTORY
```
By itself it makes vectors of texts:
```python
from manyheads import Encoder

Encoder.load("DIRECTORY").encode(["..."])[0].vector
```
"""


def classifier_card(config: Config, size: int, labels: Sequence[str], progress: Progress) -> str:
    """The same of a classifier with a vocabulary of `size` tokens."""
    return CLASSIFIER_CARD.format(
        **encoder_facts(config, size, progress),
        labels=", ".join(labels[:10]) + (", ..." if len(labels) > 10 else ""),
        pooling=config.model.pooling,
        longest=config.data.max_length,
    )


def masked_card(config: Config, size: int, progress: Progress) -> str:
    """The same of an encoder that guesses hidden tokens of a vocabulary of that size."""
    return MASKED_CARD.format(**encoder_facts(config, size, progress))


def encoder_facts(config: Config, size: int, progress: Progress) -> dict[str, object]:
    """What the cards of all encoders say."""
    model = config.model
    return {
        "language": config.data.language,
        "version": __version__,
        "layers": model.num_encoder_layers,
        "width": model.d_model,
        "positions": model.positions,
        "norm": model.norm,
        "kind": config.tokenizer.kind,
        "size": f"{size:,}",
        "data": text_of(config.data),
        "steps": progress.step,
        "metric": config.training.metric,
        "best": best_value(progress),
        "best_step": progress.best_step,
    }
