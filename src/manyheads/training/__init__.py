"""Loss, schedule, and the loop that turns batches into weights."""
