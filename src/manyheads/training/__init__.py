"""Training: the loop, loss, schedule, optimiser, recovery, and what the training of every task has in common."""
