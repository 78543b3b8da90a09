"""Read and write run directories: a model is one directory of safetensors, JSON and tokenizer files.

```
config.json  model.safetensors  tokenizer.source.*  tokenizer.target.*  metrics.jsonl  environment.json  README.md
checkpoints/step-N/  model.safetensors  optimizer.safetensors  state.json (all else, and the sha256 of all three)
```
Every file is written to a temporary name, synced and renamed, so that the last good version survives any failure.
No pickle is read or written. `model.safetensors` in the run directory holds the best weights so far, which are used
for inference.
"""

from bitext.files import write_atomically
from manyheads.checkpoint.directory import RunDirectory, read_tokenizers, write_tokenizers
from manyheads.checkpoint.files import (
    as_json,
    read_json,
    read_json_text,
    read_tensors,
    sha256,
    write_tensors,
)
from manyheads.files import plain_file, read_bytes, saving
from manyheads.former_names import former_names

__all__ = [
    "RunDirectory",
    "as_json",
    "plain_file",
    "read_bytes",
    "read_json",
    "read_json_text",
    "read_tensors",
    "read_tokenizers",
    "saving",
    "sha256",
    "write_atomically",
    "write_tensors",
    "write_tokenizers",
]

__getattr__ = former_names(__name__, {"Checkpoint": "checkpoint.checkpoints"})
