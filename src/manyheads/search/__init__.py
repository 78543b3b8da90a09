"""Greedy, beam, constrained and diverse search, and sampling, over a `Stepper` with two methods."""
