"""HTML taken apart into texts that are translated, and put together again with its tags around what they meant."""
