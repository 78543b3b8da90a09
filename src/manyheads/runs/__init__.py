"""Functions behind the verbs of the command line: each module opens files and runs one task."""
