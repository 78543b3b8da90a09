"""Masked language modelling: an encoder, trained to fill gaps in texts, from which a classifier can start."""

from manyheads.tasks.masked_lm.encoder import Encoder

__all__ = ["Encoder"]
