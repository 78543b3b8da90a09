"""Greedy, beam and constrained search, and sampling, over a `Stepper` with two methods."""
