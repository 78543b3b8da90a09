"""Models in torch as files and batches need them: weights by name, padded batches, devices and number formats."""
