"""The translator: a line is divided, searched, checked and put together again."""
