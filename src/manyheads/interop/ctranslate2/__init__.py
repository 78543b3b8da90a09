"""CTranslate2 (extra ``ct2``): manyheads models in its format, and its decoder to compare them with.

```
model.bin  config.json  shared_vocabulary.json     files of CTranslate2, which needs no others
tokenizer.source.*  tokenizer.target.*              tokenizers; .model files are SentencePiece models
manyheads.json                                     configuration and checksums
```
"""
