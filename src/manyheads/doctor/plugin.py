"""A fixture for pytest, there as soon as manyheads is installed.

```python
def test_my_model(doctor):
    doctor.examine(MyModel(), vocab_size=1000, pad=0, bos=1, eos=2)
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["Doctor", "doctor"]


class Doctor:
    """The functions of `manyheads.doctor` that examine, each of which fails the test where it finds something.

    They return their reports, so that notes can be looked at too.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """One of the functions, by its name."""
        import manyheads.doctor  # not before it is needed: it imports torch

        if not name.startswith("examine"):
            raise AttributeError(f"the doctor has no {name}")
        function = manyheads.doctor.__getattr__(name)

        def examined(*args: Any, **options: Any) -> Any:
            __tracebackhide__ = True
            report = function(*args, **options)
            if report.exit_code:
                pytest.fail("\n".join(report.lines()), pytrace=False)
            return report

        return examined


@pytest.fixture
def doctor() -> Doctor:
    """Examines models, data, metrics and schedules; see docs/doctor.md."""
    return Doctor()
