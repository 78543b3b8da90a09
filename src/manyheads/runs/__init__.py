"""What the verbs of the command line call: each module opens files and runs one task."""
