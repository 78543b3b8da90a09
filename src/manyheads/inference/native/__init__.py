"""Encoding, decoding steps and beam search in C, where torch operators would need too many calls."""
