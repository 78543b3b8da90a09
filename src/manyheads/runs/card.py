"""Model cards: the README.md of a run or of its export, with the front matter that model hubs read."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads import __version__
from manyheads.config.schema import Config, DataConfig
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.progress import Progress

__all__ = ["classifier_card", "export_card", "imported_card", "masked_card", "model_card", "text_of"]

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


CLASSIFIER_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: text-classification
---
# Classifier of {language} text: {labels}

A Transformer encoder trained with manyheads {version}: {layers} layers of width {width}, {positions} positions,
{norm}-norm; {kind} vocabulary of {size}; pooling: {pooling}.

- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}
- Longest text: {longest} tokens, of longer ones only the beginning is read
- Intended use and limits: to be filled in by you

```
manyheads classify DIRECTORY < text.{language}
```
```python
from manyheads import Classifier

Classifier.load("DIRECTORY").classify(["..."])
```
"""


MASKED_CARD = """\
---
language: [{language}]
license:  # to be filled in by you
library_name: manyheads
pipeline_tag: fill-mask
---
# Encoder of {language} text

A Transformer encoder trained with manyheads {version} to guess hidden tokens: {layers} layers of width {width},
{positions} positions, {norm}-norm; {kind} vocabulary of {size}.

- Data: {data}
- Training: {steps:,} updates; best validation {metric}: {best} at step {best_step:,}
- Intended use and limits: to be filled in by you

A classifier begins with it:
```
manyheads train CONFIG --set model.init_from=DIRECTORY
```
"""


def model_card(config: Config, tokenizers: TokenizerPair, progress: Progress) -> str:
    """Markdown with YAML front matter; licence, use and limits are left for a person to fill in."""
    data, metric = config.data, config.training.metric
    origin = TRAINED.format(
        data=text_of(data),
        steps=progress.step,
        metric=metric,
        best="none" if progress.best is None else f"{abs(progress.best):.3f}",
        best_step=progress.best_step,
    )
    return card(config, tokenizers, origin, "manyheads", OWN_USAGE)


def imported_card(config: Config, tokenizers: TokenizerPair, where: str) -> str:
    """The card of a model that was imported; as `model_card`."""
    return card(config, tokenizers, IMPORTED.format(where=where), "manyheads", OWN_USAGE)


def export_card(config: Config, tokenizers: TokenizerPair, to: str) -> str:
    """The card of an exported model; as `model_card`."""
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
    """The card with a word on where the model comes from, and how it is used."""
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


def classifier_card(config: Config, size: int, labels: Sequence[str], progress: Progress) -> str:
    """The same of a classifier with a vocabulary of `size` tokens."""
    return CLASSIFIER_CARD.format(
        **encoder_facts(config, size, progress),
        labels=", ".join(labels[:10]) + (", ..." if len(labels) > 10 else ""),
        pooling=config.model.pooling,
        longest=config.data.max_length,
    )


def masked_card(config: Config, size: int, progress: Progress) -> str:
    """The same of an encoder that guesses hidden tokens of a vocabulary of that size."""
    return MASKED_CARD.format(**encoder_facts(config, size, progress))


def encoder_facts(config: Config, size: int, progress: Progress) -> dict[str, object]:
    """What the cards of all encoders say."""
    model = config.model
    return {
        "language": config.data.language,
        "version": __version__,
        "layers": model.num_encoder_layers,
        "width": model.d_model,
        "positions": model.positions,
        "norm": model.norm,
        "kind": config.tokenizer.kind,
        "size": f"{size:,}",
        "data": text_of(config.data),
        "steps": progress.step,
        "metric": config.training.metric,
        "best": best_value(progress),
        "best_step": progress.best_step,
    }


def text_of(data: DataConfig) -> str:
    """Where training text came from."""
    return data.dataset or (data.train if isinstance(data.train, str) else " and ".join(data.train))


def best_value(progress: Progress) -> str:
    """The best validation."""
    return "none" if progress.best is None else f"{abs(progress.best):.3f}"
