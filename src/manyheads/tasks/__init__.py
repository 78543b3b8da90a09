"""The training half of each task: what it learns from, its loss, its scores."""
