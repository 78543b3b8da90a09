"""manyheads: train, check, look into and serve a Transformer of your own.

```python
from manyheads import Translator

Translator.load("runs/multi30k-de-en").translate(["Ein Hund läuft."])[0].translation
```
What stands here is imported when it is first used, so that `import manyheads` costs nothing. The blocks of the
model are at hand for people who come to learn: `from manyheads.model.attention import MultiHeadAttention`.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyheads.config.load import load_config
    from manyheads.config.schema import Config
    from manyheads.model.encoder_decoder import EncoderDecoder
    from manyheads.runs.curves import curves
    from manyheads.runs.inspect import inspect
    from manyheads.runs.scoring.evaluate import evaluate
    from manyheads.runs.train import train
    from manyheads.tasks.classification import Classifier
    from manyheads.tasks.encoding import Encoder
    from manyheads.tasks.language_modeling import Generator
    from manyheads.tasks.pretrained import from_pretrained
    from manyheads.tasks.translation import Translator
    from manyheads.text.tokenizer import Tokenizer

# OpenMP's threads spin at every barrier, by default for milliseconds. Beside other programs the spinning thread
# holds the core that the awaited thread needs; so let it spin briefly, then sleep. Read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = "0.1.0"

__all__ = [
    "Classifier",
    "Config",
    "Encoder",
    "EncoderDecoder",
    "Generator",
    "Tokenizer",
    "Translator",
    "curves",
    "evaluate",
    "from_pretrained",
    "inspect",
    "load_config",
    "train",
]

ROOMS = {
    "Classifier": "manyheads.tasks.classification",
    "Config": "manyheads.config.schema",
    "Encoder": "manyheads.tasks.encoding",
    "EncoderDecoder": "manyheads.model.encoder_decoder",
    "Generator": "manyheads.tasks.language_modeling",
    "Tokenizer": "manyheads.text.tokenizer",
    "Translator": "manyheads.tasks.translation",
    "curves": "manyheads.runs",
    "evaluate": "manyheads.runs",
    "from_pretrained": "manyheads.tasks.pretrained",
    "inspect": "manyheads.runs",
    "load_config": "manyheads.config.load",
    "train": "manyheads.runs",
}


def __getattr__(name: str) -> Any:
    """Fetch a public name from the room it lives in."""
    if name not in ROOMS:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    return vars(import_module(ROOMS[name]))[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
