"""Code for browsers: the engine and the page in JavaScript, and the exported page with its model."""
