"""The model card of a run: README.md, with the front matter that model hubs read."""

from __future__ import annotations

from manyheads import __version__
from manyheads.config.schema import Config
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.progress import Progress

__all__ = ["model_card"]

CARD = """\
---
language: [{source}, {target}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: translation
---
# {source} to {target}

A Transformer trained with manyheads {version}: {layers} layers of width {width}, {positions} positions,
{norm}-norm; {kind} vocabulary of {sizes}.

- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}
- Intended use and limits: to be filled in by you

```
manyheads translate DIRECTORY < text.{source} > text.{target}
```
```python
from manyheads import Translator

Translator.load("DIRECTORY").translate(["..."])
```
"""


def model_card(config: Config, tokenizers: TokenizerPair, progress: Progress) -> str:
    """Markdown with YAML front matter; licence, use and limits are left for a person to fill in."""
    data, model, metric = config.data, config.model, config.training.metric
    sizes = f"{tokenizers.source.size:,}"
    if not tokenizers.joint:
        sizes += f" and {tokenizers.target.size:,}"
    best = "none" if progress.best is None else f"{abs(progress.best):.3f}"
    return CARD.format(
        source=data.source,
        target=data.target,
        version=__version__,
        layers=f"{model.num_encoder_layers}+{model.num_decoder_layers}",
        width=model.d_model,
        positions=model.positions,
        norm=model.norm,
        kind=config.tokenizer.kind,
        sizes=sizes,
        data=data.dataset or (data.train if isinstance(data.train, str) else " and ".join(data.train)),
        steps=progress.step,
        metric=metric,
        best=best,
        best_step=progress.best_step,
    )
