"""After training: the curves, the weights and the outputs of a run, judged by their numbers alone."""
