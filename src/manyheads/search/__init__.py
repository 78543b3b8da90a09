"""Parts of every search, without torch: options, outputs, the state of a beam, sampling from arrays.

The beam search itself stands twice: in C (`inference/native`), and on tensors (`decoding/beam.py`).
"""
