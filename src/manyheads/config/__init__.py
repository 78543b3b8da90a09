"""Every setting in one typed tree, and how it is read from TOML."""
