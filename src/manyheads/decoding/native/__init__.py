"""C of ours, for what torch's operators are too many calls for."""
