"""Training: loss, schedule, optimiser, the training loop, and its recovery from errors and interruptions."""
