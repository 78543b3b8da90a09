"""The model card of a language model: README.md, with the front matter that model hubs read."""

from __future__ import annotations

from manyheads import __version__
from manyheads.config.schema import Config
from manyheads.text.tokenizer import Tokenizer
from manyheads.training.progress import Progress

__all__ = ["language_model_card"]

CARD = """\
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
    """Markdown with YAML front matter; licence, use and limits are left for a person to fill in."""
    data, model = config.data, config.model
    return CARD.format(
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
