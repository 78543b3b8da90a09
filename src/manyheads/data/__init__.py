"""Read, clean and store text, and make the padded batches of each update from it."""
