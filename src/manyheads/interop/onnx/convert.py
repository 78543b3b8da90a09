"""Write a model as ONNX graphs, and compare them in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import as_json, write_atomically
from manyheads.config.schema import Config
from manyheads.data.batch import pad_rows
from manyheads.errors import RunError, require
from manyheads.interop.bundle import write_metadata
from manyheads.interop.onnx.network import decoder_ports, encoder_ports, write_decoder, write_encoder
from manyheads.interop.parity import Parity, Reference, compare, decoder_input, token_scores
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair

__all__ = ["Runtime", "check_onnx", "write_onnx"]

KIND = "onnx"
ENCODER, DECODER, DESCRIPTION = "encoder.onnx", "decoder.onnx", "onnx.json"
LARGEST = 2_000_000_000  # bytes of weights; an ONNX file holds 2 GiB
Values = dict[str, NDArray[Any]]


def write_onnx(folder: Path, config: Config, tokenizers: TokenizerPair, model: EncoderDecoder) -> None:
    """Write a model into an existing folder, with its configuration and tokenizers.

    Raises:
        RunError: the model is larger than an ONNX file.
        MissingExtraError: onnx is not installed.
    """
    if sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()) > LARGEST:
        raise RunError("an ONNX file holds 2 GiB at most, and this model is larger. Use --to ctranslate2.")
    longest = config.model.max_positions
    write_encoder(folder / ENCODER, model, longest)
    write_decoder(folder / DECODER, model, longest)
    write_atomically(folder / DESCRIPTION, as_json(description(config, model)))
    write_metadata(folder, config, tokenizers, KIND, {}, DECODER)


def description(config: Config, model: EncoderDecoder) -> dict[str, Any]:
    """Return the description that a program needs to run the graphs."""

    def named(ports: Any) -> dict[str, dict[str, Any]]:
        inputs, outputs = ({name: [np.dtype(kind).name, *axes] for name, kind, axes in side} for side in ports)
        return {"inputs": inputs, "outputs": outputs}

    return {
        "format": 1,
        "encoder": {"file": ENCODER, **named(encoder_ports(model))},
        "decoder": {"file": DECODER, **named(decoder_ports(model))},
        "pad": PAD,
        "begin": BOS,
        "end": EOS,
        "never": [PAD, BOS],
        "longest": config.model.max_positions,
        "max_length_ratio": config.search.max_length_ratio,
        "max_length_offset": config.search.max_length_offset,
        "decoder_layers": len(model.decoder_layers),
        "heads": model.config.num_heads,
        "head_width": model.config.d_model // model.config.num_heads,
    }


class Runtime:
    """The two graphs of a folder in onnxruntime on the CPU."""

    def __init__(self, folder: Path) -> None:
        """Load the graphs; raises `MissingExtraError`."""
        library = require("onnxruntime", extra="onnx", purpose="the comparison of an ONNX export")
        options = library.SessionOptions()
        options.log_severity_level = 3
        self.encoder, self.decoder = (
            library.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in (ENCODER, DECODER)
        )

    def begin(self, source: NDArray[np.int64]) -> Values:
        """Encode sources (B, S), and return the inputs of the first step without its tokens."""
        names = [port.name for port in self.encoder.get_outputs()]
        values: Values = dict(zip(names, self.encoder.run(None, {"source": source}), strict=True))
        for port in self.decoder.get_inputs():
            if port.name.startswith("past_"):
                _, heads, _, width = port.shape
                values[port.name] = np.zeros((len(source), heads, 0, width), np.float32)
        return values

    def step(self, values: Values, tokens: NDArray[np.int64], position: int) -> NDArray[np.float32]:
        """Append a token to each row (B,), extend the cache in `values`, and return log-probabilities (B, V)."""
        inputs = {**values, "tokens": tokens, "place": np.array(position)}
        names = [port.name for port in self.decoder.get_outputs()]
        outputs: Values = dict(zip(names, self.decoder.run(None, inputs), strict=True))
        values |= {name.replace("new_", "past_"): part for name, part in outputs.items() if name.startswith("new_")}
        return outputs["log_probabilities"]

    def greedy(self, source: NDArray[np.int64], limits: Sequence[int]) -> list[list[int]]:
        """Decode greedily, up to the limit of each row."""
        values, tokens = self.begin(source), np.full(len(source), BOS)
        steps = []
        for position in range(max(limits) + 1):
            scores = self.step(values, tokens, position)
            scores[:, [PAD, BOS]] = -np.inf
            tokens = scores.argmax(1)
            steps.append(tokens)
        rows = np.stack(steps, 1).tolist()
        rows = [row[: row.index(EOS)] if EOS in row else row for row in rows]
        return [row[:limit] for row, limit in zip(rows, limits, strict=True)]


def check_onnx(folder: Path, expected: Reference) -> Parity:
    """Compare a written folder with its model; raises `ParityError`, `MissingExtraError`."""
    runtime = Runtime(folder)
    source = pad_rows(expected.samples.rows, PAD, last=EOS).numpy()
    values, target_in = runtime.begin(source), decoder_input(expected.outputs).numpy()
    steps = [runtime.step(values, target_in[:, t], t) for t in range(target_in.shape[1])]
    scores = token_scores(torch.from_numpy(np.stack(steps, 1)), expected.outputs)
    return compare(expected, scores, runtime.greedy(source, expected.limits), "float32", "the ONNX model")
