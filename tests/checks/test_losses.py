"""Losses that show an ignored source, an ignored context or a different training are named."""

from __future__ import annotations

from tests.checks.severities import severities

from manyheads.checks.losses import _context_findings, _logged_findings, batching_findings, source_findings


def test_an_ignored_source_or_context_is_named() -> None:
    assert severities(source_findings(1.4, 6.0, 300)) == {}
    assert severities(source_findings(3.9, 4.1, 300)) == {"source-ignored": "warning"}
    assert severities(source_findings(4.0, 4.01, 300)) == {"source-ignored": "error"}
    assert severities(_context_findings(0.8, 300)) == {}
    assert severities(_context_findings(0.01, 300)) == {"context-ignored": "error"}


def test_a_logged_loss_that_the_weights_do_not_give_is_named() -> None:
    assert severities(_logged_findings(1.40, 300, 1.43)) == {}
    assert severities(_logged_findings(2.3, 300, 1.4)) == {}  # another text, a mean of weights
    assert severities(_logged_findings(6.5, 300, 5.0)) == {}
    assert severities(_logged_findings(12.0, 300, None)) == {}
    assert severities(_logged_findings(2.6, 300, 1.4)) == {"training-differs": "error"}
    assert severities(_logged_findings(12.0, 300, 0.03)) == {"training-differs": "error"}


def test_a_loss_that_depends_on_the_batching_is_named() -> None:
    assert severities(batching_findings(1.40001, 1.4)) == {}
    assert severities(batching_findings(1.45, 1.4)) == {"loss-depends-on-batching": "error"}
