"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine takes longer for an example.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")
