"""What a verb does with a whole run: train, resume, evaluate, examine, export, import."""
