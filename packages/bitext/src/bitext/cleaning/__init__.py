"""Clean parallel text: remove the pairs that hurt a training, and say why. The module `clean` runs all steps."""
