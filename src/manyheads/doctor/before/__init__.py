"""Before training: text, configuration and the new model, judged by their numbers alone."""
