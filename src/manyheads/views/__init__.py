"""Views of an inspection or a training: data, charts, SVG, PNG and text. It imports no torch."""
