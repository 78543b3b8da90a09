"""Read and write the vocabulary of a folder of transformers: tokenizer.json, older vocab.txt or vocab.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.checkpoint import as_json, read_bytes, read_json, read_json_text, write_atomically
from manyheads.errors import RunError, require
from manyheads.interop.huggingface.settings import FAMILIES
from manyheads.text.huggingface import Family, HuggingFaceTokenizer, StoredTokenizer

_ENCODER_ROLES = ("unk", "pad", "cls", "sep")  # in the order of the ids in manyheads


def read_tokenizer(folder: Path, family: Family, rows: int) -> HuggingFaceTokenizer:
    """Read the vocabulary of a folder; `rows` is the number of rows of its embeddings.

    Raises:
        RunError: the vocabulary is missing, damaged, or lacks a symbol that the model needs.
        MissingExtraError: the `tokenizers` library is not installed.
    """
    library = require("tokenizers", extra="hf", purpose="the vocabulary of a pre-trained model")
    settings = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
    named = folder / "special_tokens_map.json"
    if named.is_file():
        settings = {**read_json(named), **settings}
    usual = FAMILIES[family]["tokens"]
    names = {role: _symbol_name(settings.get(f"{role}_token"), name) for role, name in usual.items()}
    try:
        processor = _load_processor(library, folder, settings, names)
        processor.no_truncation()
        processor.no_padding()
        content = json.loads(processor.to_str())
    except RunError:
        raise
    except Exception as error:  # the library raises nothing more particular
        raise RunError(f"the vocabulary of {folder} cannot be read: {error}") from error
    numbers = {role: processor.token_to_id(name) for role, name in names.items()}
    for needed in ("eos",) if family == "gpt2" else ("cls", "sep"):
        if numbers[needed] is None:
            raise RunError(f"the vocabulary of {folder} lacks {names[needed]}, its {needed}_token.")
    if family == "gpt2":
        specials, marks = (None, None, None, numbers["eos"]), 1
    else:
        unk, pad, begin, end = (numbers[role] for role in _ENCODER_ROLES)
        specials, marks = (unk, pad, begin, end), _marks_between(processor, begin, end, 1 + (family == "roberta"))
    try:
        stored = StoredTokenizer(
            family=family,
            rows=rows,
            specials=specials,
            mask=numbers.get("mask"),
            marks_between=2 if marks == 2 else 1,
            content=content,
        )
    except ValueError as error:
        raise RunError(f"the vocabulary of {folder} does not fit its config.json: {rows:,} rows.") from error
    return HuggingFaceTokenizer(stored)


def _symbol_name(setting: Any, default: str) -> str:
    """Return the special symbol that the settings name by its text or in an object."""
    name = setting.get("content") if isinstance(setting, Mapping) else setting
    return name if isinstance(name, str) else default


def _load_processor(library: Any, folder: Path, settings: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    if (folder / "tokenizer.json").is_file():
        return library.Tokenizer.from_str(read_json_text(folder / "tokenizer.json"))
    if (folder / "vocab.txt").is_file():
        return _word_pieces(library, folder, settings, names)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _byte_pieces(library, folder, settings, names)
    raise RunError(f"{folder} has no vocabulary: no tokenizer.json, vocab.txt, or vocab.json and merges.txt.")


def _word_pieces(library: Any, folder: Path, settings: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Build WordPiece from a list of pieces, one a line (Devlin et al. 2019)."""
    lines = read_bytes(folder / "vocab.txt").decode().removesuffix("\n").split("\n")
    vocabulary = {line.removesuffix("\r"): number for number, line in enumerate(lines)}
    model = library.models.WordPiece(vocabulary, unk_token=names["unk"], max_input_chars_per_word=100)
    processor = library.Tokenizer(model)
    processor.normalizer = library.normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    processor.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    processor.decoder = library.decoders.WordPiece()
    processor.add_special_tokens([name for name in names.values() if name in vocabulary])
    return processor


def _byte_pieces(library: Any, folder: Path, settings: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Build byte-level BPE from a vocabulary and the list of its merges (Radford et al. 2019)."""
    lines = read_bytes(folder / "merges.txt").decode().split("\n")
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    vocabulary = read_json(folder / "vocab.json")
    processor = library.Tokenizer(library.models.BPE(vocabulary, merges))
    add_space = bool(settings.get("add_prefix_space"))
    processor.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=add_space)
    processor.decoder = library.decoders.ByteLevel()
    processor.add_special_tokens([name for name in names.values() if name in vocabulary])
    return processor


def _marks_between(processor: Any, begin: int, end: int, default: int) -> int:
    """Return the number of end marks between two texts.

    Raises:
        RunError: the folder marks texts otherwise than by a begin mark and end marks.
    """
    ids = processor.encode("a", "b").ids
    if ids == [
        *processor.encode("a", add_special_tokens=False).ids,
        *processor.encode("b", add_special_tokens=False).ids,
    ]:
        return default  # the folder does not define the marks
    between = ids.count(end) - 1
    if ids[0] != begin or ids[-1] != end or between not in (1, 2) or ids.count(begin) != 1:
        raise RunError(f"the vocabulary marks two texts in a way that is not known here: {ids} for a and b.")
    return between


def write_tokenizer(folder: Path, tokenizer: HuggingFaceTokenizer, longest: int) -> None:
    """Write tokenizer.json and tokenizer_config.json, for texts of `longest` tokens at most, marks included."""
    stored = tokenizer.stored
    roles = ("eos",) if stored.family == "gpt2" else _ENCODER_ROLES
    numbers = stored.specials[-1:] if stored.family == "gpt2" else stored.specials
    pairs = zip(roles, numbers, strict=True)
    symbols = {role: tokenizer.names[number] for role, number in pairs if number is not None}
    if stored.mask is not None:
        symbols["mask"] = tokenizer.names[stored.mask]
    types = ["token_type_ids"] if stored.family == "bert" else []
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "model_input_names": ["input_ids", *types, "attention_mask"],
        **{f"{role}_token": name for role, name in symbols.items()},
    }
    write_atomically(folder / "tokenizer.json", as_json(_content_with_marks(tokenizer)))
    write_atomically(folder / "tokenizer_config.json", as_json(settings))


def _content_with_marks(tokenizer: HuggingFaceTokenizer) -> dict[str, Any]:
    """Return the document of the library; the marks of texts are added if an encoder's document lacks them."""
    stored = tokenizer.stored
    if stored.family == "gpt2" or stored.content.get("post_processor") is not None:
        return stored.content
    begin, end = (number for number in stored.specials[2:])
    assert begin is not None
    assert end is not None
    library = require("tokenizers", extra="hf", purpose="the vocabulary of a pre-trained model")
    first, last = tokenizer.names[begin], tokenizer.names[end]
    processor = library.Tokenizer.from_str(json.dumps(stored.content))
    processor.post_processor = library.processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {f'{last} ' * stored.marks_between}$B:1 {last}:1",
        special_tokens=[(first, begin), (last, end)],
    )
    content: dict[str, Any] = json.loads(processor.to_str())
    return content
