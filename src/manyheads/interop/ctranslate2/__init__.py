"""CTranslate2 (extra ``ct2``): our models in its format, and its decoder as an engine of ours.

```
model.bin  config.json  shared_vocabulary.json     what CTranslate2 reads, alone too
tokenizer.source.*  tokenizer.target.*              ours; .model files are SentencePiece models
manyheads.json                                     our configuration, checksums, what the parity check found
```
"""

from manyheads.interop.ctranslate2.convert import (
    QUANTIZATIONS,
    check_ctranslate2,
    open_ctranslate2,
    write_ctranslate2,
)
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.opening import engine_for, is_export
from manyheads.interop.ctranslate2.spec import build_spec

__all__ = [
    "QUANTIZATIONS",
    "CTranslate2Engine",
    "build_spec",
    "check_ctranslate2",
    "engine_for",
    "is_export",
    "open_ctranslate2",
    "write_ctranslate2",
]
