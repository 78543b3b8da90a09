"""The Transformer and its parts: modules that know tensors, but neither files nor text."""
