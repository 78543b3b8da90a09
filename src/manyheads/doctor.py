"""The functions of transformer_doctor, which examine any PyTorch model, and the examination of a machine.

```python
from manyheads.doctor import examine

report = examine(model, vocab_size=1000, pad=0, bos=1, eos=2)
print(report)
```
"""

from __future__ import annotations

from manyheads.checks.machine import examine_machine
from transformer_doctor import (
    Finding,
    Report,
    compare_resume,
    examine,
    examine_attention,
    examine_bleu,
    examine_collate,
    examine_encoding,
    examine_evaluation,
    examine_schedule,
    examine_split,
    examine_split_function,
    examine_vocabulary,
    lightning_callback,
    referee,
    trainer_callback,
    watch,
)

__all__ = [
    "Finding",
    "Report",
    "compare_resume",
    "examine",
    "examine_attention",
    "examine_bleu",
    "examine_collate",
    "examine_encoding",
    "examine_evaluation",
    "examine_machine",
    "examine_schedule",
    "examine_split",
    "examine_split_function",
    "examine_vocabulary",
    "lightning_callback",
    "referee",
    "trainer_callback",
    "watch",
]
