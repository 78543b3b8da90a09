"""German-English: words, clauses and kinds of sentence."""
