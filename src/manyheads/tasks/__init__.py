"""A trained model as a person uses it: raw text in, raw text out."""
