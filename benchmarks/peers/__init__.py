"""The contenders of `train_peers.py`: each trains in a process of its own, and is paused between rounds."""
