"""ONNX (extra ``onnx``): our models as graphs that any runtime of that format computes.

```
encoder.onnx        source ids -> what the decoder looks at, once a sentence
decoder.onnx        one step: a token a row and the past -> log-probabilities and the longer past
onnx.json           names of inputs and outputs, special ids, limits
tokenizer.source.*  tokenizer.target.*  manyheads.json    ours
```
"""

from manyheads.interop.onnx.convert import check_onnx, write_onnx

__all__ = ["check_onnx", "write_onnx"]
