"""The Transformer and its parts, section by section of the paper: modules that compute with tensors alone."""
