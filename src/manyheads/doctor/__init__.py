"""The doctor: examines a machine, and models, data and training of anyone's, and names what is wrong.

```python
from manyheads.doctor import examine

report = examine(model, vocab_size=1000, pad=0, bos=1, eos=2)
print(report)
```
What stands here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyheads.doctor.examination import examine
    from manyheads.doctor.report import Finding, Report

__all__ = ["Finding", "Report", "examine"]

ROOMS = {
    "Finding": "manyheads.doctor.report",
    "Report": "manyheads.doctor.report",
    "examine": "manyheads.doctor.examination",
}


def __getattr__(name: str) -> Any:
    """Fetch a public name from the module it lives in."""
    if name not in ROOMS:
        raise AttributeError(f"module 'manyheads.doctor' has no attribute {name!r}")
    return vars(import_module(ROOMS[name]))[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
