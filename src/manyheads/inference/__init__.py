"""A trained model in use, without torch: engines, and a translator, a classifier and a language model of them."""
