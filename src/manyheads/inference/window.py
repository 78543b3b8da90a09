"""The window of a language model, which sees at most so many tokens.

When a text fills the window, its first half is dropped and its last half is computed again from position 0, as if
the text began there. Every token therefore has at least half a window as its context. The tokens that a text keeps
depend on its own length alone.
"""


def window_step(window: int) -> int:
    """Return how many tokens of a full window are dropped: half of them."""
    return max(1, window // 2)


def held_tokens(length: int, window: int) -> int:
    """Return how many last tokens a text of `length` tokens keeps as its context."""
    if length <= window:
        return length
    step = window_step(window)
    return window - step + 1 + (length - window - 1) % step
