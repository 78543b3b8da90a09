"""How fast a model trains and decodes on this machine."""
