"""Contenders of `decode_peers.py`."""
