"""A model as one HTML file: its weights, tokenizer, search and page, for a browser without a network."""
