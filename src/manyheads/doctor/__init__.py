"""Examine a machine, and any PyTorch model, its data and its training; name the defects.

```python
from manyheads.doctor import examine

report = examine(model, vocab_size=1000, pad=0, bos=1, eos=2)
print(report)
```
The functions are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyheads.doctor.encoding import examine_collate, examine_encoding
    from manyheads.doctor.examination import examine
    from manyheads.doctor.formula import examine_attention
    from manyheads.doctor.machine import examine_machine
    from manyheads.doctor.metrics import examine_bleu, examine_evaluation
    from manyheads.doctor.report import Finding, Report
    from manyheads.doctor.schedules import examine_schedule
    from manyheads.doctor.splits import examine_split, examine_split_function

__all__ = [
    "Finding",
    "Report",
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
]

_LAZY = {
    "Finding": "manyheads.doctor.report",
    "Report": "manyheads.doctor.report",
    "examine": "manyheads.doctor.examination",
    "examine_attention": "manyheads.doctor.formula",
    "examine_bleu": "manyheads.doctor.metrics",
    "examine_collate": "manyheads.doctor.encoding",
    "examine_encoding": "manyheads.doctor.encoding",
    "examine_evaluation": "manyheads.doctor.metrics",
    "examine_machine": "manyheads.doctor.machine",
    "examine_schedule": "manyheads.doctor.schedules",
    "examine_split": "manyheads.doctor.splits",
    "examine_split_function": "manyheads.doctor.splits",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _LAZY:
        raise AttributeError(f"module 'manyheads.doctor' has no attribute {name!r}")
    return vars(import_module(_LAZY[name]))[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
