"""Build a translator by a plan of named steps; only missing or outdated products are made."""
