"""Files whose structure survives a translation: units are found, translated, and written in their places."""
