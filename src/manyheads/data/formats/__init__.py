"""Readers of the forms that parallel text is published in; each yields pairs of (source, target), one at a time."""
