"""Translation of HTML: blocks of text are translated, and inline tags are projected onto the translation."""
