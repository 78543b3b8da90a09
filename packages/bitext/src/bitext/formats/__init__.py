"""Read the file formats of published parallel text, one (source, target) pair at a time."""
