"""A silent listener takes everything that the protocol of listeners has."""

from __future__ import annotations

from transformer_doctor.progress import NO_LISTENER, Listener


def test_the_silent_listener_is_a_listener() -> None:
    listener: Listener = NO_LISTENER
    with listener.phase("training", 3, "updates") as advance:
        advance(1)
    listener.message("slow")
