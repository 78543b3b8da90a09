"""Scores of a run on a split or on files, and two runs against each other."""
