"""Losses that show an ignored source, an ignored context or a different training are named."""

from __future__ import annotations

from collections.abc import Iterable

from manyheads.checks.losses import _context_findings, _logged_findings, batching_findings, source_findings
from transformer_doctor.report import Finding


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def test_an_ignored_source_or_context_is_named() -> None:
    assert names(source_findings(1.4, 6.0, 300)) == {}
    assert names(source_findings(3.9, 4.1, 300)) == {"source-ignored": "warning"}
    assert names(source_findings(4.0, 4.01, 300)) == {"source-ignored": "error"}
    assert names(_context_findings(0.8, 300)) == {}
    assert names(_context_findings(0.01, 300)) == {"context-ignored": "error"}


def test_a_logged_loss_that_the_weights_do_not_give_is_named() -> None:
    assert names(_logged_findings(1.40, 300, 1.43)) == {}
    assert names(_logged_findings(2.3, 300, 1.4)) == {}  # another text, a mean of weights
    assert names(_logged_findings(6.5, 300, 5.0)) == {}
    assert names(_logged_findings(12.0, 300, None)) == {}
    assert names(_logged_findings(2.6, 300, 1.4)) == {"training-differs": "error"}
    assert names(_logged_findings(12.0, 300, 0.03)) == {"training-differs": "error"}


def test_a_loss_that_depends_on_the_batching_is_named() -> None:
    assert names(batching_findings(1.40001, 1.4)) == {}
    assert names(batching_findings(1.45, 1.4)) == {"loss-depends-on-batching": "error"}
