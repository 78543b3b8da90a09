"""Decoding with torch, one token at a time: KV cache, steppers, greedy, beam and constrained search, the engine.

A plain translation on a CPU is computed in C (`inference/native`).
"""
