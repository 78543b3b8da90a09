"""What one sentence did inside the model, as data and as pictures."""
