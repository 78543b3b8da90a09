"""Write the files of the built-in corpora."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

from tools.corpora.splits import GRAMMARS, corpus_text

FOLDER = Path(__file__).parents[2] / "src/manyheads/data/builtin"

for name in GRAMMARS:
    text = corpus_text(name).encode()
    path = FOLDER / f"{name}.tsv.xz"
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path.name}: {path.stat().st_size:,} bytes, SHA-256 of the text {hashlib.sha256(text).hexdigest()}")
