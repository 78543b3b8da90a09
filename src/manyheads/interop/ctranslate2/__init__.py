"""CTranslate2 (extra ``ct2``): our models in its format, and its decoder as one of our engines.

```
model.bin  config.json  shared_vocabulary.json     files of CTranslate2, which needs no others
tokenizer.source.*  tokenizer.target.*              ours; .model files are SentencePiece models
manyheads.json                                     our configuration and checksums
```
"""

from manyheads.interop.ctranslate2.convert import (
    QUANTIZATIONS,
    check_ctranslate2,
    engine_for,
    load_ctranslate2,
    write_ctranslate2,
)
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.spec import build_spec

__all__ = [
    "QUANTIZATIONS",
    "CTranslate2Engine",
    "build_spec",
    "check_ctranslate2",
    "engine_for",
    "load_ctranslate2",
    "write_ctranslate2",
]
