"""BERT, DistilBERT, RoBERTa and GPT-2 folders of Hugging Face's transformers, in and out, without transformers."""
