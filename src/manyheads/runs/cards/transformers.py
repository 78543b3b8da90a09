"""Model cards of encoders and language models that were brought in, and of what goes out to transformers."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads.config.schema import Config, Task
from manyheads.interop.huggingface.check import AUTO_CLASSES
from manyheads.runs.cards.facts import text_of

__all__ = ["exported_text_card", "imported_text_card", "sentence_transformer_card"]

CARD = """\
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
    """Of a run that was made of a model of transformers; licence, use and limits are left for a person."""
    origin = f"Imported from {where}, whose licence and description hold for it too"
    return card(config, size, labels, "manyheads", origin, OWN_USAGE[config.task])


def exported_text_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Of a folder for transformers that was made of a run."""
    usage = USAGE.format(name=AUTO_CLASSES[config.task])
    return card(config, size, labels, "transformers", exported(config), usage)


def sentence_transformer_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Of a folder for sentence-transformers that was made of a run."""
    return card(config, size, labels, "sentence-transformers", exported(config), LOGITS)


def exported(config: Config) -> str:
    """Where an export comes from."""
    return f"Exported by manyheads, and compared with the run it was made of; data: {text_of(config.data)}"


def card(config: Config, size: int, labels: Sequence[str], library: str, origin: str, usage: str) -> str:
    """Markdown with YAML front matter."""
    model, decoder = config.model, config.task == "language-modeling"
    shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    return CARD.format(
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
