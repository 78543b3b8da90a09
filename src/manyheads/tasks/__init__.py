"""Trained models applied to raw text: translator, classifier, generator and encoder."""
