"""Build the model of a configuration, and load the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyheads.checkpoint.bundle import LoadedModel
from manyheads.checkpoint.directory import RunDirectory
from manyheads.checkpoint.files import read_header
from manyheads.config.schema import Config
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.tensors.weights import SkipInitialization, check_header, load_weights
from manyheads.text.tokenizer import PAD, TokenizerPair


def build_model(config: Config, tokenizers: TokenizerPair, classes: int = 0) -> Transformer:
    """Build a new model on the CPU, with random weights; `classes` is the number of classes of a classifier."""
    tokenizer = tokenizers.target
    match config.spec.architecture:
        case "encoder-decoder":
            return EncoderDecoder(config.model, tokenizers.source.size, tokenizer.size)
        case "decoder":
            return DecoderOnly(config.model, tokenizer.size, absent=tokenizer.absent)
        case "masked-encoder":
            return MaskedLanguageModel(config.model, tokenizer.size, pad=PAD)
        case "classifier":
            return TextClassifier(config.model, tokenizer.size, classes, pad=PAD)


def load_model(run: RunDirectory, config: Config, tokenizers: TokenizerPair, classes: int = 0) -> Any:
    """Build the model of a run and load its best weights into it, on the CPU, in eval mode; see `build_model`."""
    path = run.weights_path

    def build() -> Transformer:
        return build_model(config, tokenizers, classes)

    check_header(config.model, build, read_header(path), str(path))  # before any memory is taken
    with SkipInitialization():
        model = build()
    load_weights(model, run.weights(), str(path))
    return model.eval()


def load_run(folder: Path) -> LoadedModel:
    """Load the model of a run directory."""
    run = RunDirectory.existing(folder)
    config = run.config()
    tokenizers = run.tokenizers(config)
    return LoadedModel(config, tokenizers, load_model(run, config, tokenizers))
