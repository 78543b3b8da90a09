"""Work on a whole run: train, resume, evaluate, examine, export, import."""
