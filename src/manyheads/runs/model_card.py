"""Model cards of translators: the README.md of a run or an export, with the front matter that model hubs read."""

from __future__ import annotations

from manyheads import __version__
from manyheads.config.schema import Config, DataConfig
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.progress import Progress

__all__ = ["best_value", "export_card", "imported_card", "text_of", "translator_card"]


def text_of(data: DataConfig) -> str:
    """Describe where the training text came from."""
    return data.dataset or (data.train if isinstance(data.train, str) else " and ".join(data.train))


def best_value(progress: Progress) -> str:
    """Return the best validation score."""
    return "none" if progress.best is None else f"{abs(progress.best):.3f}"


CARD = """\
---
language: [{source}, {target}]
license:  # to be filled in by you
library_name: {library}
pipeline_tag: translation
---
# {source} to {target}

A Transformer of manyheads {version}: {layers} layers of width {width}, {positions} positions,
{norm}-norm; {kind} vocabulary of {sizes}.

{origin}
- Intended use and limits: to be filled in by you

{usage}
"""
TRAINED = """\
- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}"""
IMPORTED = "- Imported from {where}, whose licence and description hold for it too"
EXPORTED = "- Exported by manyheads, and compared with the run it was made of"

PIECES = """\
Without manyheads: split text with `{source}` (SentencePiece), give the pieces to
`ctranslate2.Translator("DIRECTORY").translate_batch`, join what comes with `{target}`.
"""
GRAPHS = """\
```python
import json

import numpy as np
import onnxruntime
import sentencepiece

FOLDER = "DIRECTORY"
with open(f"{FOLDER}/onnx.json") as file:
    about = json.load(file)
encoder, decoder = (onnxruntime.InferenceSession(f"{FOLDER}/{part}.onnx") for part in ("encoder", "decoder"))
source = sentencepiece.SentencePieceProcessor(f"{FOLDER}/SOURCE_PIECES")
target = sentencepiece.SentencePieceProcessor(f"{FOLDER}/TARGET_PIECES")
memory = [one.name for one in encoder.get_outputs()]
past = [one.name for one in decoder.get_inputs() if one.name.startswith("past_")]


def translate(text):
    pieces = source.encode(text)
    ids = np.array([[*pieces, about["end"]]])
    given = dict(zip(memory, encoder.run(None, {"source": ids})))
    nothing = np.zeros((1, about["heads"], 0, about["head_width"]), np.float32)
    given.update({name: nothing for name in past})
    token, written = about["begin"], []
    for place in range(min(2 * len(pieces) + 20, about["longest"] - 1)):
        given.update(tokens=np.array([token]), place=np.array(place))
        scores, *grown = decoder.run(None, given)
        scores[:, about["never"]] = -np.inf
        token = int(scores.argmax())
        if token == about["end"]:
            break
        written.append(token)
        given.update(zip(past, grown))
    return target.decode(written)


print(translate("..."))
```
"""
OWN_USAGE = """\
```
manyheads translate DIRECTORY < text.SOURCE > text.TARGET
```
```python
from manyheads import Translator

Translator.load("DIRECTORY").translate(["..."])
```"""
# (library, how it is used) of each format
USAGES = {
    "ctranslate2": (
        "ctranslate2",
        """\
```python
from manyheads import Translator

Translator.load("DIRECTORY", engine="ctranslate2").translate(["..."])
```
{pieces}""",
    ),
    "huggingface": (
        "transformers",
        """\
```python
from transformers import MarianMTModel, MarianTokenizer

model, tokenizer = MarianMTModel.from_pretrained("DIRECTORY"), MarianTokenizer.from_pretrained("DIRECTORY")
found = model.generate(**tokenizer(["..."], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(found, skip_special_tokens=True))
```""",
    ),
    "onnx": (
        "onnxruntime",
        """\
`encoder.onnx` reads a source once, `decoder.onnx` appends a token to each row; `onnx.json` describes both.
{graphs}""",
    ),
    "argos": (
        "argostranslate",
        """\
```
argospm install FILE.argosmodel
argos-translate --from SOURCE --to TARGET "..."
```
LibreTranslate finds it there too.""",
    ),
}


def translator_card(config: Config, tokenizers: TokenizerPair, progress: Progress) -> str:
    """Return Markdown with YAML front matter; licence, use and limits are left to fill in."""
    data, metric = config.data, config.training.metric
    origin = TRAINED.format(
        data=text_of(data),
        steps=progress.step,
        metric=metric,
        best=best_value(progress),
        best_step=progress.best_step,
    )
    return card(config, tokenizers, origin, "manyheads", OWN_USAGE)


def imported_card(config: Config, tokenizers: TokenizerPair, where: str) -> str:
    """Return the card of an imported model, as `translator_card`."""
    return card(config, tokenizers, IMPORTED.format(where=where), "manyheads", OWN_USAGE)


def export_card(config: Config, tokenizers: TokenizerPair, to: str) -> str:
    """Return the card of an exported model, as `translator_card`."""
    library, usage = USAGES[to]
    files = {".model": ("tokenizer.source.model", "tokenizer.target.model")}
    if config.tokenizer.kind == "marian":
        files = {".json": ("source.spm", "target.spm")}
    source, target = files.get(tokenizers.source.suffix, ("", ""))
    pieces = PIECES.format(source=source, target=target) if source else ""
    graphs = GRAPHS if tokenizers.source.suffix == ".model" else ""  # a SentencePiece model with our ids
    graphs = graphs.replace("SOURCE_PIECES", source).replace("TARGET_PIECES", target)
    usage = usage.replace("{pieces}", pieces).replace("{graphs}", graphs).rstrip()
    return card(config, tokenizers, EXPORTED, library, usage)


def card(config: Config, tokenizers: TokenizerPair, origin: str, library: str, usage: str) -> str:
    """Return the card with a sentence on the origin of the model, and how to use it."""
    data, model = config.data, config.model
    sizes = f"{tokenizers.source.size:,}"
    if not tokenizers.joint and tokenizers.target.size != tokenizers.source.size:
        sizes += f" and {tokenizers.target.size:,}"
    return CARD.format(
        source=data.source,
        target=data.target,
        version=__version__,
        layers=f"{model.num_encoder_layers}+{model.num_decoder_layers}",
        width=model.d_model,
        positions=model.positions,
        norm=model.norm,
        kind=config.tokenizer.kind,
        sizes=sizes,
        origin=origin,
        library=library,
        usage=usage.replace("SOURCE", data.source).replace("TARGET", data.target),
    )
