"""The code that runs in browsers: the engine of exported models, the page, and the explorer of the server."""
