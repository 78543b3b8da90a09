"""A model as one HTML file that translates in the browser, without a server."""
