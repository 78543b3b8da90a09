"""Findings before training, from figures of the text, the configuration and the new model."""
