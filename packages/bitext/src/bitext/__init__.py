"""Parallel text: read, convert, divide, clean, report on and fetch it, for anybody who trains anything.

```python
from pathlib import Path

from bitext.pairs import TextFiles, read_pairs

for pair in read_pairs(TextFiles((Path("corpus.de"), Path("corpus.en")), "de", "en")):
    print(pair.source, pair.target)
```
`formats/` has a module for each family of file formats, `cleaning/` the rules and scores that remove pairs.
"""

__version__ = "0.1.0"
