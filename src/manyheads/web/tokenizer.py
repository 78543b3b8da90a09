"""Descriptions of tokenizers as JSON, from which web/text/tokenizer.js makes the same tokenizers in a browser."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from bitext.typography import MARKS
from manyheads.errors import UsageError
from manyheads.text.characters import ByteTokenizer, CharacterTokenizer
from manyheads.text.huggingface import BYTES, HuggingFaceTokenizer
from manyheads.text.interface import SPECIALS, Tokenizer
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.words import WordTokenizer
from manyheads.web.protobuf import read_fields
from manyheads.web.wordrules import describe_word_rules

Json = dict[str, Any]

# Numbers of the fields of a SentencePiece model, and of their values.
_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5
_PIECE_TEXT, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_ALGORITHM, _BLANK_AS_SUFFIX, _UNKNOWN_TEXT = 3, 24, 44
_ALGORITHMS = {1: "unigram", 2: "bpe"}
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_EXTRA_BLANKS, _ESCAPE_BLANKS = 2, 3, 4, 5
_DEFAULT_UNKNOWN_TEXT = " \u2047 "


def describe_tokenizer(tokenizer: Tokenizer) -> Json:
    """Return all that a browser needs for the same token ids, as JSON.

    Raises:
        UsageError: the browser engine does not support this kind of tokenizer.
    """
    common: Json = {
        "kind": tokenizer.kind,
        "lowercase": tokenizer.lowercase,
        "keepSpace": tokenizer.keep_space,
        "marksBetween": tokenizer.marks_between,
        "side": tokenizer.side,
        **({"marks": MARKS} if tokenizer.side == "source" else {}),
    }
    match tokenizer:
        case SubwordTokenizer():
            return common | {"model": _describe_sentencepiece(tokenizer.model, tokenizer.kind)}
        case MarianTokenizer():
            model = _describe_sentencepiece(tokenizer.model, tokenizer.kind)
            return common | {"symbols": tokenizer.symbols[len(SPECIALS) :], "model": model}
        case CharacterTokenizer():
            return common | {"symbols": tokenizer.symbols[len(SPECIALS) :]}
        case ByteTokenizer():
            return common
        case HuggingFaceTokenizer():
            return common | _describe_pretrained(tokenizer)
        case WordTokenizer():
            rules = describe_word_rules(tokenizer.pipeline)
            if rules is None:
                raise _unsupported_error(
                    tokenizer.kind, f'spaCy\'s rules for "{tokenizer.pipeline}" are more than patterns'
                )
            return common | {"symbols": tokenizer.symbols[len(SPECIALS) :], "rules": rules}
        case MosesBpeTokenizer():
            raise _unsupported_error(tokenizer.kind, "the rules of Moses are not written in JavaScript")
        case _:
            raise _unsupported_error(tokenizer.kind, "it is not one of this package")


def _unsupported_error(kind: str, reason: str) -> UsageError:
    """Return the error for a tokenizer that a browser cannot hold."""
    return UsageError(
        f'tokenizer.kind = "{kind}" cannot be exported to HTML: {reason}. '
        'Train with tokenizer.kind = "bpe", "unigram", "characters" or "bytes".'
    )


def _describe_sentencepiece(data: bytes, kind: str) -> Json:
    """Return a SentencePiece model as JSON; raises `UsageError` if it has settings that are not supported."""
    model = read_fields(data)
    trainer, normalizer, denormalizer = (
        read_fields(model.get(field, [b""])[-1]) for field in (_TRAINER, _NORMALIZER, _DENORMALIZER)
    )
    pieces = [read_fields(piece) for piece in model[_PIECES]]
    texts = [piece[_PIECE_TEXT][-1].decode() for piece in pieces]
    types = [piece.get(_PIECE_TYPE, [_NORMAL])[-1] for piece in pieces]
    scores = np.array([piece.get(_PIECE_SCORE, [0.0])[-1] for piece in pieces], dtype="<f4")
    algorithm = _ALGORITHMS.get(trainer.get(_ALGORITHM, [1])[-1])
    refused = {
        "its SentencePiece model is neither bpe nor unigram": algorithm is None,
        "its SentencePiece model has unused pieces": _UNUSED in types,
        "its SentencePiece model writes blanks after words": trainer.get(_BLANK_AS_SUFFIX, [0])[-1],
        "its SentencePiece model does not replace blanks": not normalizer.get(_ESCAPE_BLANKS, [1])[-1],
        "its SentencePiece model has rules for the output": denormalizer.get(_CHARSMAP, [b""])[-1],
    }
    for reason, present in refused.items():
        if present:
            raise _unsupported_error(kind, reason)

    def of_type(piece_type: int) -> list[int]:
        return [i for i, kind in enumerate(types) if kind == piece_type]

    unknown_text = trainer.get(_UNKNOWN_TEXT, [_DEFAULT_UNKNOWN_TEXT.encode()])[-1].decode()
    rules = normalizer.get(_CHARSMAP, [b""])[-1]
    return {
        "algorithm": algorithm,
        "pieces": texts,
        "scores": base64.b64encode(scores.tobytes()).decode(),
        "unknown": of_type(_UNKNOWN)[0],
        "unknownText": unknown_text,
        "control": of_type(_CONTROL),
        "bytes": sorted(of_type(_BYTE), key=lambda i: int(texts[i][1:-1], 16)),
        "user": of_type(_USER_DEFINED),
        "dummyPrefix": bool(normalizer.get(_DUMMY_PREFIX, [1])[-1]),
        "removeExtraBlanks": bool(normalizer.get(_REMOVE_EXTRA_BLANKS, [1])[-1]),
        "charsmap": base64.b64encode(rules).decode() if rules else None,
    }


def _describe_pretrained(tokenizer: HuggingFaceTokenizer) -> Json:
    """Return WordPiece or byte-level BPE as JSON; raises `UsageError` for other kinds."""
    content = json.loads(tokenizer.processor.to_str())
    model = content["model"]
    if any(not token["special"] for token in content["added_tokens"]):
        raise _unsupported_error(tokenizer.kind, "its vocabulary has added words")
    numbers = tokenizer.original_ids[len(SPECIALS) :]
    symbols = [tokenizer.names.get(number or 0, f"<row {number}>") for number in numbers]
    described: Json = {
        "symbols": symbols,
        "rows": [i for i, number in enumerate(numbers, len(SPECIALS)) if number not in tokenizer.names],
        "added": [i for i, symbol in enumerate(symbols, len(SPECIALS)) if symbol not in model["vocab"]],
    }
    match model["type"]:
        case "WordPiece":
            return described | {"wordpiece": _describe_wordpiece(tokenizer, content)}
        case "BPE":
            return described | {"bytelevel": _describe_byte_level(tokenizer, content)}
        case _:
            raise _unsupported_error(tokenizer.kind, f"its model is of the type {model['type']}")


def _describe_wordpiece(tokenizer: HuggingFaceTokenizer, content: Json) -> Json:
    """Return the settings of WordPiece; raises `UsageError` if it does not split text as BERT does."""
    model, normalizer, decoder = content["model"], content["normalizer"] or {}, content["decoder"] or {}
    _check_types(tokenizer.kind, content, "BertNormalizer", "BertPreTokenizer", "WordPiece")
    accents = normalizer["strip_accents"]
    prefix = model["continuing_subword_prefix"]
    if decoder["prefix"] != prefix:
        raise _unsupported_error(tokenizer.kind, f"its decoder has the prefix {decoder['prefix']}, not {prefix}")
    return {
        "unknown": tokenizer.ids_by_original[model["vocab"][model["unk_token"]]],
        "prefix": prefix,
        "longestWord": model["max_input_chars_per_word"],
        "cleanText": normalizer["clean_text"],
        "splitChinese": normalizer["handle_chinese_chars"],
        "stripAccents": normalizer["lowercase"] if accents is None else accents,
        "lowerText": normalizer["lowercase"],
        "cleanUp": decoder["cleanup"],
    }


def _describe_byte_level(tokenizer: HuggingFaceTokenizer, content: Json) -> Json:
    """Return the settings of byte-level BPE; raises `UsageError` if it differs from GPT-2's."""
    model, splitter = content["model"], content["pre_tokenizer"] or {}
    _check_types(tokenizer.kind, content, None, "ByteLevel", "ByteLevel")
    unusual = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
    changed = [name for name in unusual if model.get(name)]
    if changed or not splitter.get("use_regex", True):
        raise _unsupported_error(
            tokenizer.kind, f"its byte-level BPE has {', '.join(changed) or 'no pattern of words'}"
        )
    if not BYTES.keys() <= model["vocab"].keys():
        raise _unsupported_error(tokenizer.kind, "its byte-level BPE does not have all bytes")
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    return {"addBlank": splitter["add_prefix_space"], "merges": merges}


def _check_types(kind: str, content: Json, *expected: str | None) -> None:
    """Raise `UsageError` unless the normaliser, the splitter and the decoder are of the expected types."""
    for part, expected_type in zip(("normalizer", "pre_tokenizer", "decoder"), expected, strict=True):
        actual = content[part]["type"] if content[part] else None
        if actual != expected_type:
            raise _unsupported_error(kind, f"its {part} is {actual}, not {expected_type}")
