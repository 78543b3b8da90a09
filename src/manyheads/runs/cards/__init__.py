"""Model cards: the README.md of a run or of its export, with the front matter that model hubs read."""
