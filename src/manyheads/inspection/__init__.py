"""Inspection of a model on one text, and training curves: as data, text, pictures and pages."""
