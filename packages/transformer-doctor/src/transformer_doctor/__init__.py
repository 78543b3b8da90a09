"""Examine any PyTorch model, its data and its training; name the defects.

```python
from transformer_doctor import examine

report = examine(model, vocab_size=1000, pad=0, bos=1, eos=2)
print(report)
```
The functions are imported when they are first used.

`checks/` holds a module for each family of checks, which gathers an observation and judges it. `tolerances` holds
every tolerance of a comparison of numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_doctor.checks.encoding import examine_collate, examine_encoding, examine_vocabulary
    from transformer_doctor.checks.formula import examine_attention
    from transformer_doctor.checks.metrics import examine_bleu, examine_evaluation
    from transformer_doctor.checks.schedules import examine_schedule
    from transformer_doctor.checks.splits import examine_split, examine_split_function
    from transformer_doctor.examination import examine
    from transformer_doctor.judging import referee
    from transformer_doctor.report import Finding, Report
    from transformer_doctor.resuming import compare_resume
    from transformer_doctor.watching import lightning_callback, trainer_callback, watch

__version__ = "0.1.0"

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
    "examine_schedule",
    "examine_split",
    "examine_split_function",
    "examine_vocabulary",
    "lightning_callback",
    "referee",
    "trainer_callback",
    "watch",
]

_MODULES = {
    "report": ("Finding", "Report"),
    "examination": ("examine",),
    "judging": ("referee",),
    "resuming": ("compare_resume",),
    "watching": ("lightning_callback", "trainer_callback", "watch"),
    "checks.encoding": ("examine_collate", "examine_encoding", "examine_vocabulary"),
    "checks.formula": ("examine_attention",),
    "checks.metrics": ("examine_bleu", "examine_evaluation"),
    "checks.schedules": ("examine_schedule",),
    "checks.splits": ("examine_split", "examine_split_function"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return vars(import_module(f"transformer_doctor.{module}"))[name]
    raise AttributeError(f"module 'transformer_doctor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
