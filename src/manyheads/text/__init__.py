"""Tokenizers, text normalisation, sentence splitting, language identification."""
