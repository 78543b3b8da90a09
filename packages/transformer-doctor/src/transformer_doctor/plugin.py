"""Pytest fixture `doctor`, available wherever transformer-doctor is installed.

```python
def test_my_model(doctor):
    doctor.examine(MyModel(), vocab_size=1000, pad=0, bos=1, eos=2)
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from transformer_doctor.errors import DoctorError


class Doctor:
    """Examining functions of `transformer_doctor`, which fail the test on errors and warnings.

    With `strict=True`, a test fails too where a check needs an argument that was not given. The functions return
    their reports, so that notes can be read too.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import transformer_doctor  # not before it is needed: it imports torch

        if not name.startswith("examine"):
            raise AttributeError(f"the doctor has no {name}")
        function = transformer_doctor.__getattr__(name)

        def examined(*args: Any, strict: bool = False, **options: Any) -> Any:
            __tracebackhide__ = True
            try:
                report = function(*args, **options)
            except DoctorError as error:  # what to change in the call, without the doctor's own source
                pytest.fail(f"{name}: {error}", pytrace=False)
            if report.strict_exit_code if strict else report.exit_code:
                pytest.fail("\n".join(report.brief_lines()), pytrace=False)
            return report

        return examined


@pytest.fixture
def doctor() -> Doctor:
    """Examine models, data, metrics and schedules; see docs/doctor.md."""
    return Doctor()
