"""ONNX (extra ``onnx``): manyheads models as graphs for any runtime of that format.

```
encoder.onnx        source ids -> keys and values of cross-attention, once a sentence
decoder.onnx        one step: a token for each row and the KV cache -> log-probabilities and the longer cache
onnx.json           names of inputs and outputs, special ids, limits
tokenizer.source.*  tokenizer.target.*  manyheads.json    ours
```
"""
