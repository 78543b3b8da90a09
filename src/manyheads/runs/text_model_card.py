"""Model cards of classifiers, encoders and language models, trained or imported."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads import __version__
from manyheads.config.schema import Config, Task
from manyheads.interop.huggingface.check import AUTO_CLASSES
from manyheads.runs.model_card import best_value, text_of
from manyheads.text.tokenizer import Tokenizer
from manyheads.training.progress import Progress

__all__ = [
    "classifier_card",
    "exported_text_card",
    "imported_text_card",
    "language_model_card",
    "masked_card",
    "sentence_transformer_card",
]

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
    """Return the card of a classifier with a vocabulary of `size` tokens."""
    return CLASSIFIER_CARD.format(
        **encoder_facts(config, size, progress),
        labels=", ".join(labels[:10]) + (", ..." if len(labels) > 10 else ""),
        pooling=config.model.pooling,
        longest=config.data.max_length,
    )


def masked_card(config: Config, size: int, progress: Progress) -> str:
    """Return the card of a masked language model with a vocabulary of `size` tokens."""
    return MASKED_CARD.format(**encoder_facts(config, size, progress))


def encoder_facts(config: Config, size: int, progress: Progress) -> dict[str, object]:
    """Return the facts that the cards of all encoders have."""
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


LANGUAGE_MODEL_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: text-generation
---
# Language model of {language}

A Transformer decoder trained with manyheads {version}: {layers} layers of width {width}, {positions} positions,
{norm}-norm; {kind} vocabulary of {size}. It looks at {window} tokens.

- Data: {data}
- Training: {steps:,} updates; best validation loss: {best} nats a token at step {best_step:,}
- Intended use and limits: to be filled in by you

```
manyheads generate DIRECTORY --prompt "..."
```
```python
from manyheads import Generator

Generator.load("DIRECTORY").generate(["..."])[0].samples[0].text
```
"""


def language_model_card(config: Config, tokenizer: Tokenizer, progress: Progress) -> str:
    """Return Markdown with YAML front matter; licence, use and limits are left to fill in."""
    data, model = config.data, config.model
    return LANGUAGE_MODEL_CARD.format(
        language=data.language,
        version=__version__,
        layers=model.num_decoder_layers,
        width=model.d_model,
        positions=model.positions,
        norm=model.norm,
        kind=config.tokenizer.kind,
        size=f"{tokenizer.size:,}",
        window=data.max_length,
        data=data.train,
        steps=progress.step,
        best="none" if progress.best is None else f"{abs(progress.best):.4f}",
        best_step=progress.best_step,
    )


TRANSFORMERS_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: {library}
pipeline_tag: {pipeline}
---
# {title}

- {origin}
- {layers} layers of width {width}, vocabulary of {size:,}{labels}
- Intended use and limits: to be filled in by you

{usage}
"""
PIPELINES: dict[Task, str] = {
    "classification": "text-classification",
    "masked-lm": "fill-mask",
    "language-modeling": "text-generation",
}
OWN_USAGE: dict[Task, str] = {
    "classification": "```\nmanyheads classify DIRECTORY < text\n```",
    "masked-lm": "A classifier begins with it:\n```\nmanyheads train CONFIG --set model.init_from=DIRECTORY\n```",
    "language-modeling": '```\nmanyheads generate DIRECTORY --prompt "..."\n```',
}
USAGE = """\
```python
from transformers import AutoTokenizer, {name}

model, tokenizer = {name}.from_pretrained("DIRECTORY"), AutoTokenizer.from_pretrained("DIRECTORY")
model(**tokenizer(["..."], return_tensors="pt")).logits
```"""

LOGITS = """\
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("DIRECTORY")
names = model[0].auto_model.config.id2label
for row in model.encode(["..."], convert_to_tensor=True).softmax(-1):
    print(names[int(row.argmax())], float(row.max()))
```
`encode` gives the logits of the classes, in the order of `id2label` in config.json."""


def imported_text_card(config: Config, size: int, labels: Sequence[str], where: str) -> str:
    """Return the card of a run imported from transformers; licence, use and limits are left to fill in."""
    origin = f"Imported from {where}, whose licence and description hold for it too"
    return card(config, size, labels, "manyheads", origin, OWN_USAGE[config.task])


def exported_text_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Return the card of a run exported for transformers."""
    usage = USAGE.format(name=AUTO_CLASSES[config.task])
    return card(config, size, labels, "transformers", exported(config), usage)


def sentence_transformer_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Return the card of a run exported for sentence-transformers."""
    return card(config, size, labels, "sentence-transformers", exported(config), LOGITS)


def exported(config: Config) -> str:
    """Describe the origin of an export."""
    return f"Exported by manyheads, and compared with the run it was made of; data: {text_of(config.data)}"


def card(config: Config, size: int, labels: Sequence[str], library: str, origin: str, usage: str) -> str:
    """Return Markdown with YAML front matter."""
    model, decoder = config.model, config.task == "language-modeling"
    shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    return TRANSFORMERS_CARD.format(
        language=config.data.language,
        library=library,
        pipeline=PIPELINES[config.task],
        title=f"{'Language model' if decoder else 'Encoder'} for {config.task}",
        origin=origin,
        width=model.d_model,
        layers=model.num_decoder_layers if decoder else model.num_encoder_layers,
        size=size,
        labels=f"; labels: {shown}" if labels else "",
        usage=usage,
    )
