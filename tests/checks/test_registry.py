"""Every task has its checks; a check that cannot be made is skipped."""

from __future__ import annotations

from manyheads.checks.registry import _TRAINED, NEW_TRAINING
from manyheads.config.schema import TASKS


def test_every_task_has_checks_and_each_sentence_occurs_once() -> None:
    assert len(_TRAINED) == len({spec.architecture for spec in TASKS.values()})
    for checks in (NEW_TRAINING, *_TRAINED.values()):
        sentences = [check.sentence for check in checks if check.sentence]
        assert sentences
        assert len(sentences) == len(set(sentences))
