"""Decoding with a trained model, one token at a time: KV cache, steppers, and the engine that searches with them.

The subpackage `native` computes the same steps in C, on a CPU.
"""
