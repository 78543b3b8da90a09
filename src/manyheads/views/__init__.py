"""What an inspection or a training shows: data, charts, SVG, PNG and text. It imports no torch."""
