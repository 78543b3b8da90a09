"""Import and export of models in the formats of other programs, each checked against the original."""
