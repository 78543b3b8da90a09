"""Tests of documents: text files whose markup stays in the translation."""
