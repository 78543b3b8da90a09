"""Korean-English: words, particles, verb forms and kinds of sentence."""
