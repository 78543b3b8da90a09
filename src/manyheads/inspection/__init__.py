"""Inspection of a loaded model on one text, with torch: attention, heads, changes, each word left out."""
