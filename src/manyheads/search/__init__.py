"""Greedy and beam search behind two methods, `step` and `select`."""
