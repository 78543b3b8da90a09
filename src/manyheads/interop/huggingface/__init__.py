"""Import and export of BERT, DistilBERT, RoBERTa and GPT-2 folders of transformers, without that library."""
