"""Tests that read as promises; a package of its own, so that none of the same name elsewhere is taken for it."""
