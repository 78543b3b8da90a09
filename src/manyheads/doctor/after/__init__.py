"""Findings after training, from figures of the curves, the weights and the outputs of a run."""
