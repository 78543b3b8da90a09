"""manyheads: train, check, inspect and serve Transformer models.

```python
from manyheads import Translator

Translator.load("runs/multi30k-de-en").translate(["Ein Hund läuft."])[0].translation
```
Each name is imported from its module when it is first used, so that `import manyheads` costs nothing. The building
blocks of the model can be imported too: `from manyheads.model.attention import MultiHeadAttention`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from manyheads.former_paths import FormerPaths

if TYPE_CHECKING:
    from manyheads.config.load import load_config
    from manyheads.config.schema import Config
    from manyheads.inference.classifier import Classifier
    from manyheads.inference.generator import Generator
    from manyheads.inference.inspect import curves, inspect
    from manyheads.inference.inspect_options import InspectOptions
    from manyheads.inference.translation.translator import Translator
    from manyheads.model.encoder_decoder import EncoderDecoder
    from manyheads.runs.evaluate import evaluate
    from manyheads.runs.pretrained import from_pretrained
    from manyheads.runs.train import train
    from manyheads.tasks.masked_lm.encoder import Encoder
    from manyheads.text.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "Classifier",
    "Config",
    "Encoder",
    "EncoderDecoder",
    "Generator",
    "InspectOptions",
    "Tokenizer",
    "Translator",
    "curves",
    "evaluate",
    "from_pretrained",
    "inspect",
    "load_config",
    "train",
]

_LAZY = {
    "Classifier": "manyheads.inference.classifier",
    "Config": "manyheads.config.schema",
    "Encoder": "manyheads.tasks.masked_lm.encoder",
    "EncoderDecoder": "manyheads.model.encoder_decoder",
    "Generator": "manyheads.inference.generator",
    "InspectOptions": "manyheads.inference.inspect_options",
    "Tokenizer": "manyheads.text.tokenizer",
    "Translator": "manyheads.inference.translation.translator",
    "curves": "manyheads.inference.inspect",
    "evaluate": "manyheads.runs.evaluate",
    "from_pretrained": "manyheads.runs.pretrained",
    "inspect": "manyheads.inference.inspect",
    "load_config": "manyheads.config.load",
    "train": "manyheads.runs.train",
}

sys.meta_path.append(FormerPaths())


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    from manyheads.errors import require

    return vars(require(_LAZY[name], purpose=f"manyheads.{name}"))[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
