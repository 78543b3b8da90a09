"""MarianMT folders of Hugging Face's transformers (the opus-mt family), read and written without transformers."""
