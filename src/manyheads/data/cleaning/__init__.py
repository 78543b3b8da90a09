"""Clean parallel text: remove the pairs that hurt a training, and say why. `clean` puts the parts together."""
