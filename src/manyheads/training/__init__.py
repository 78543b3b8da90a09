"""Training: loss, schedule, optimiser, the loop, and what makes it robust."""
