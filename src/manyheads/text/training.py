"""Train tokenizers from text, by their configuration; subwords by the SentencePiece library."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import sentencepiece

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import ConfigError, DataError
from manyheads.text.characters import ByteTokenizer, CharacterTokenizer
from manyheads.text.interface import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer, lower
from manyheads.text.normalize import normalize, normalize_target, unify
from manyheads.text.subwords import BLANK, SubwordTokenizer
from manyheads.text.tokenizer import TokenizerPair
from manyheads.text.words import WordTokenizer

_MAX_LINE_CHARACTERS = 1_000  # characters; the library leaves out lines of more than 4,192 bytes
_TRAINING_THREADS = 16  # fixed, because the sums of unigram training, and so its pieces, depend on it

_RESERVED = str.maketrans("▁▅", "  ")  # no piece can contain these; the library skips training text with the second

_TOO_LARGE_MESSAGE = re.compile(r"Vocabulary size too high .* value <= (\d+)")
_MAX_SIZE_WITHOUT_BYTES = 260  # pieces: 256 bytes and 4 special symbols would leave no room
_COVERAGES = (1.0, 0.9995)  # share of the characters that get a piece: at first, and if there are too many
_TOO_SMALL_MESSAGE = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
_NO_TEXT = re.compile(r"sentences_\.empty|all_chars_count")


def train_tokenizers(
    config: TokenizerConfig,
    sources: Sequence[str],
    targets: Sequence[str],
    source_language: str,
    target_language: str,
) -> TokenizerPair:
    """Train the tokenizers of both languages: one for both if ``config.joint``.

    The kind ``bytes`` needs no training.
    """
    if config.joint or config.kind == "bytes":
        languages = source_language
        if target_language != source_language:
            languages = f"{source_language}+{target_language}"
        tokenizer = train_tokenizer(config, [*sources, *targets], languages)
        return TokenizerPair(tokenizer, tokenizer, joint=True)
    source = train_tokenizer(config, sources, source_language)
    return TokenizerPair(source, train_tokenizer(config, targets, target_language), joint=False)


def train_tokenizer(
    config: TokenizerConfig, texts: Sequence[str], languages: str, *, keep_space: bool = False
) -> Tokenizer:
    """Train one tokenizer on texts of one language, or of two (``de+en``)."""
    match config.kind:
        case "bpe" | "unigram":
            return train_subwords(config, texts, languages, keep_space=keep_space)
        case "words":
            return WordTokenizer.train(config, texts, languages)
        case "characters":
            return CharacterTokenizer.train(config, texts, languages, keep_space=keep_space)
        case "bytes":
            return ByteTokenizer(lowercase=config.lowercase, keep_space=keep_space)
        case "marian" | "moses-bpe" | "huggingface":
            raise ConfigError(
                [f'tokenizer.kind = "{config.kind}" comes with an imported model. Name it in model.init_from.']
            )


def train_subwords(
    config: TokenizerConfig, texts: Sequence[str], languages: str, *, keep_space: bool = False
) -> SubwordTokenizer:
    """Train a subword tokenizer; the same texts give the same pieces, whatever the number of processors.

    Raises:
        DataError: there is no text.
        ConfigError: the text does not allow this ``tokenizer.vocab_size``; the message names one that is
            possible.
    """
    try:
        model = _trained_model(config, texts, keep_space=keep_space)
    except RuntimeError as error:
        raise _explain(error, config, languages) from error
    return SubwordTokenizer(config, model, keep_space=keep_space)


def _trained_model(config: TokenizerConfig, texts: Sequence[str], *, keep_space: bool) -> bytes:
    """Return the serialised model of a training of the library; raises its RuntimeError.

    If not all characters fit into the vocabulary, as in Chinese, the rarest get no piece.
    """
    try:
        return _train(config, texts, _COVERAGES[0], keep_space=keep_space)
    except RuntimeError as error:
        if not _TOO_SMALL_MESSAGE.search(str(error)):
            raise
        return _train(config, texts, _COVERAGES[1], keep_space=keep_space)


def _has_bytes(config: TokenizerConfig) -> bool:
    """Return whether characters without a piece are spelled as bytes; a small vocabulary has no room for these."""
    return config.vocab_size > _MAX_SIZE_WITHOUT_BYTES


def _train(config: TokenizerConfig, texts: Sequence[str], coverage: float, *, keep_space: bool) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_training_lines(config, texts, keep_space=keep_space),
        model_writer=model,
        model_type=config.kind,
        vocab_size=config.vocab_size,
        byte_fallback=_has_bytes(config),
        character_coverage=coverage,
        split_digits=config.split_digits,
        normalization_rule_name="identity",
        # if white space is kept, a line end is a separate symbol, and no blank is put before a text
        add_dummy_prefix=not keep_space,
        remove_extra_whitespaces=not keep_space,
        user_defined_symbols=[
            *(["\n"] if keep_space else []),
            *(BLANK + symbol for symbol in config.symbols),  # in a text they follow a blank
        ],
        control_symbols=list(config.reserved),
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_surface=SPECIALS[UNK],
        num_threads=_TRAINING_THREADS,
        minloglevel=2,
    )
    return model.getvalue()


def possible_size(config: TokenizerConfig, texts: Sequence[str]) -> int:
    """Return the vocabulary size nearest to `config.vocab_size` with which these texts can be trained on.

    Raises:
        DataError: there is no text.
    """
    try:
        _trained_model(config, texts, keep_space=False)
    except RuntimeError as error:
        match = _TOO_LARGE_MESSAGE.search(str(error)) or _TOO_SMALL_MESSAGE.search(str(error))
        if match is None:
            raise _explain(error, config, "train") from error
        return int(match[1])
    return config.vocab_size


def _training_lines(config: TokenizerConfig, texts: Sequence[str], *, keep_space: bool = False) -> Iterator[str]:
    """Yield the normalised texts for the trainer of the library, cut to lines that are not too long."""
    free = (text.translate(_RESERVED) for text in texts)
    normal = normalize_target if config.normal_form else normalize
    for line in (part for text in free for part in unify(text).split("\n")) if keep_space else map(normal, free):
        if config.lowercase:
            line = lower(line)
        start = 0
        while start < len(line):
            end = start + _MAX_LINE_CHARACTERS
            if end < len(line):
                blank = line.rfind(" ", start + 1, end)
                end = blank if blank > 0 else end
            yield line[start:end]
            start = end


def _explain(error: RuntimeError, config: TokenizerConfig, languages: str) -> Exception:
    """Explain a known error of the library in terms of the configuration; return other errors unchanged."""
    message = str(error)
    if match := _TOO_LARGE_MESSAGE.search(message):
        mistake = f"is more than the text of {languages} allows. Use at most {match[1]}."
    elif match := _TOO_SMALL_MESSAGE.search(message):
        parts = (
            "characters, 256 bytes and 4 special symbols"
            if _has_bytes(config)
            else "characters and 4 special symbols"
        )
        mistake = f"is too small for the text of {languages}: its {parts} are {match[1]}. Use at least {match[1]}."
    elif _NO_TEXT.search(message):
        return DataError(f"no text to make the vocabulary of {languages} from. Check data.train.")
    else:
        return error
    return ConfigError([f"tokenizer.vocab_size = {config.vocab_size} {mistake}"])
