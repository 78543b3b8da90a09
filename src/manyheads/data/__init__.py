"""From files on disk to the padded tensors of one update."""
