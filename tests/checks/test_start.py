"""A first loss that no new model can have is named."""

from __future__ import annotations

from manyheads.checks.start import start_findings


def test_a_first_loss_that_no_new_model_has_is_named() -> None:
    for loss, width in ((8.7, 0), (9.3, 256), (7.2, 0), (6.5, 128)):
        assert not list(start_findings(loss, 6_000 if loss > 7 else 69, width))
    for loss in (0.5, 6.0, 21.0, 148.0):
        assert [finding.name for finding in start_findings(loss, 6_000)] == ["wrong-at-the-start"]
    assert list(start_findings(float("nan"), 2))
