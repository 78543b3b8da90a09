"""CTranslate2 (extra ``ct2``): our models in its format, and its decoder as one of our engines.

```
model.bin  config.json  shared_vocabulary.json     files of CTranslate2, which needs no others
tokenizer.source.*  tokenizer.target.*              ours; .model files are SentencePiece models
manyheads.json                                     our configuration and checksums
```
"""
