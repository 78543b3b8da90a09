"""The sections of a configuration on text, tokenizer, model, search and evaluation."""

import sys
from typing import Annotated, Literal

from manyheads.config.schema.base import Field, Limits, Section

Probability = Annotated[float, Limits(ge=0.0, lt=1.0)]
MAX_COUNT = 1_000_000_000  # of a count without a narrower limit
Positive = Annotated[int, Limits(gt=0, le=MAX_COUNT)]
Count = Annotated[int, Limits(ge=0, le=MAX_COUNT)]
Layers = Annotated[int, Limits(gt=0, le=1_000)]
Factor = Annotated[float, Limits(ge=0, le=1_000_000)]
Text = Annotated[str, Limits(max_length=4_096, pattern=r"^[^\x00]*$")]  # also the name of a file
Share = Annotated[float, Limits(gt=0.0, lt=1.0)]
Language = Annotated[str, Limits(max_length=100, pattern=r"^([a-zA-Z]{2,8}([-_][a-zA-Z0-9]{1,8})*)?$")]
FilePair = tuple[Text, Text]


class PairConfig(Section):
    """Two languages of a translator of several languages, and their text."""

    source: Language = Field(description="source language, such as de")
    target: Language = Field(description="target language, such as en")
    both: bool = Field(False, description="train also from target to source, on the same text")
    train: Text | FilePair | None = Field(None, description="training text. Default: data.train")
    valid: Text | FilePair | None = Field(None, description="validation text. Default: data.valid")
    test: Text | FilePair | None = Field(None, description="test text. Default: data.test")
    more: tuple[Text | FilePair, ...] | None = Field(
        None, description="further training corpora. Default: data.more"
    )
    weight: Factor = Field(1.0, description="number of times that its sentence pairs are drawn in an epoch")


class DataConfig(Section):
    """Text files, and which of their lines are used."""

    root: Text = Field(
        ".",
        description="folder that relative paths in this section start from. In a TOML file, ./ and ../ start from "
        "the folder of that file; any other relative path starts from the current directory",
    )
    dataset: Text | None = Field(
        None,
        description='corpus instead of files: "builtin:de-en", "builtin:ko-en", or "hf:NAME/CONFIG" (extra hf); a '
        "split that is set to [source file, target file] is read from these files",
    )
    source: Language = Field("", description="source language, such as de")
    target: Language = Field("", description="target language, such as en")
    language: Language = Field("", description="language of the text, such as en; for all tasks but translation")
    pairs: tuple[PairConfig, ...] = Field(
        (),
        description="languages of a translator of several languages, instead of data.source and data.target: "
        "tables [[data.pairs]] with source, target, both (true: also from target to source), weight (times that "
        "its sentence pairs are drawn in an epoch), and train, valid, test and more where they differ from those "
        "of [data]. Batches mix all directions, and the vocabulary is joint",
    )
    temperature: Annotated[float, Limits(gt=0, le=100)] = Field(
        1.0,
        description="data.pairs: sampling temperature T of the directions: one of n sentence pairs is drawn in "
        "proportion to n ** (1/T). 1 draws every sentence pair once in an epoch, 5 draws small corpora more often",
    )
    documents: Literal["file", "line"] = Field(
        "file",
        description="language-modeling: file reads a whole file as one text, line breaks included (books, "
        "code); line reads each line as a text of its own, with an end symbol after it (unrelated sentences)",
    )
    train: Text | FilePair = Field(
        "train",
        description="training text: the name of a split, read from the files {split}.{language}[.gz|.xz|.zst]; "
        "one .tsv or .jsonl file; or [source file, target file]. Tasks other than translation read one file, "
        "whose ending .tsv, .jsonl or .txt may be left out",
    )
    valid: Text | FilePair | Share = Field(
        "valid",
        description="validation text, written as train; it is scored every training.save_every updates to "
        "choose the best weights. Tasks other than translation also take a share: 0.1 holds out the last tenth "
        "of train",
    )
    test: Text | FilePair | None = Field(
        None, description="test text, written as train, which `manyheads evaluate` scores"
    )
    more: tuple[Text | FilePair, ...] = Field(
        (), description="further training corpora, each written as train: other domains, back-translations"
    )
    weights: tuple[Factor, ...] | None = Field(
        None,
        description="number of times that the pairs of a corpus are drawn in an epoch: one number for train, "
        "then one for each corpus in more. 2 is twice, 0.5 a different half of the pairs in each epoch, 0 never. "
        "Default: each pair once. Raise it for a small corpus that matters, lower it for a large noisy one",
    )
    limit: Annotated[float, Limits(gt=0, le=1e12)] | None = Field(
        None,
        description="use only the first pairs of train: a number of pairs, or below 1 a share of them",
    )
    max_length: Annotated[int, Limits(gt=0, le=1_000_000)] = Field(
        128,
        description="maximum length of a text in tokens. translation: training pairs with a longer side are "
        "dropped and counted. classification, masked-lm: longer texts are cut. language-modeling: length of a "
        "training block, and of the context that the model sees. Memory and time grow with it",
    )
    max_ratio: Annotated[float, Limits(ge=1, le=MAX_COUNT)] = Field(
        9.0,
        description="maximum length ratio of the two sides of a pair, in characters; pairs above it are dropped "
        "and counted",
    )
    drop_duplicates: bool = Field(True, description="drop training pairs that have occurred before")
    drop_overlap: bool = Field(True, description="drop training pairs that also occur in valid or test")
    invalid_utf8: Literal["error", "replace"] = Field(
        "error", description="bytes that are not valid UTF-8: an error, or replaced by U+FFFD", internal=True
    )
    swapped: bool = Field(
        False, description="the files hold the target first: the other direction of data.pairs", internal=True
    )
    augment: Annotated[float, Limits(gt=0, le=5)] | None = Field(
        None,
        description="translation: changes of training pairs for single words, capitals, missing end marks, typing "
        "errors, addresses and emoji, new ones in each epoch. 1 changes a quarter of the pairs, as is usual; 0.5 "
        "changes half as many",
    )

    terms: Probability = Field(
        0.0,
        description="translation: share of training pairs in which one to three words of the source are replaced "
        "by their translation, as a glossary does later (Dinu et al. 2019): the model learns to use the terms of "
        "any glossary, and to inflect them. 0.5 is enough (bpe, unigram)",
    )

    def check_weights(self) -> None:
        """Refuse weights that do not fit the corpora."""
        if self.weights is None:
            return
        corpora = 1 + len(self.more)
        if len(self.weights) != corpora:
            raise ValueError(
                f"data.weights holds {len(self.weights)} numbers, but there are {corpora} corpora: train and "
                f"{len(self.more)} in data.more. Give one number for each."
            )
        if not any(self.weights):
            raise ValueError("data.weights must not all be 0.")

    def check_pairs(self) -> None:
        """Refuse pairs of one language, directions that occur twice, and settings for another number of pairs."""
        if not self.pairs:
            if self.temperature != 1:
                raise ValueError("data.temperature is for data.pairs. For corpora of one pair, set data.weights.")
            return
        for name in ("weights", "augment", "terms"):
            if getattr(self, name) not in (None, 0.0):
                raise ValueError(f"data.{name} is for one pair of languages. Leave it out beside data.pairs.")
        seen: set[tuple[str, str]] = set()
        for pair in self.pairs:
            names = pair.source.lower(), pair.target.lower()
            if not all(names) or names[0] == names[1]:
                raise ValueError(
                    f'data.pairs: "{pair.source}" and "{pair.target}" are no two languages. Name a source and a '
                    "target."
                )
            for direction in (names, names[::-1]) if pair.both else (names,):
                if direction in seen:
                    raise ValueError(
                        f"data.pairs: {'-'.join(direction)} occurs twice. Put all of its text into one table: "
                        "train and more."
                    )
                seen.add(direction)

    def check_tests_of_pairs(self) -> None:
        """Refuse test files that two pairs of languages share."""
        owners: dict[frozenset[str], set[str]] = {}
        for pair in self.pairs:
            files = frozenset((pair.test,) if isinstance(pair.test, str) else pair.test or ())
            languages = {pair.source.lower(), pair.target.lower()}
            named = isinstance(pair.test, tuple) or "." in (pair.test or "")  # not the name of a split
            if named and owners.setdefault(files, languages) != languages:
                both = " and ".join("-".join(sorted(names)) for names in (owners[files], languages))
                raise ValueError(f"data.pairs: {both} have the same test files. Name those of each pair.")

    def directions(self, split: Literal["train", "valid", "test"] = "train") -> "tuple[DataConfig, ...]":
        """Return the settings of each direction as if it were the only one: of data.pairs, else these.

        Of several directions, those that name no test set are left out for the split "test".
        """
        if not self.pairs:
            return (self,)
        views = []
        for pair in self.pairs:
            given = {name: value for name in ("train", "valid", "test", "more") if (value := getattr(pair, name))}
            view = self.direction(pair.source, pair.target).model_copy(update=given)
            view = view.model_copy(update={"weights": (pair.weight,) * (1 + len(view.more))})
            views.append(view)
            if pair.both:
                reverse = {"source": pair.target, "target": pair.source, "swapped": True}
                views.append(view.model_copy(update=reverse))
        return tuple(view for view in views if split != "test" or view.test is not None)

    def direction(self, source: str, target: str) -> "DataConfig":
        """Return the settings of one direction, with the text that [data] names."""
        return self.model_copy(update={"source": source, "target": target, "pairs": (), "weights": None})

    def reads_files(self, split: Literal["train", "valid", "test"]) -> bool:
        """Return whether a split is read from files, not from a data set."""
        return self.dataset is None or isinstance(getattr(self, split), tuple)

    @property
    def has_test(self) -> bool:
        """Whether a test text is named, of any direction."""
        return any(view.test is not None for view in self.directions())

    @property
    def corpus_names(self) -> list[str]:
        """Names of train and of each corpus in more, for messages; of all directions, each with its languages."""
        if self.pairs:
            views = self.directions()
            return [f"{view.source}-{view.target}: {name}" for view in views for name in view.corpus_names]
        return [part if isinstance(part, str) else " and ".join(part) for part in (self.train, *self.more)]


class TokenizerConfig(Section):
    """Tokenizer of source and target (section 5.1: byte-pair encoding)."""

    kind: Literal["bpe", "unigram", "words", "characters", "bytes", "marian", "moses-bpe", "huggingface"] = Field(
        "bpe",
        description="unit of text: bpe or unigram pieces (SentencePiece), words (spaCy, extra words), "
        "characters, or UTF-8 bytes; marian, moses-bpe (words of Moses in pieces with @@, extra words) and "
        "huggingface are the vocabularies of pre-trained models",
    )
    vocab_size: Annotated[int, Limits(ge=8, le=10_000_000)] = Field(
        8_000,
        description="number of pieces, special symbols included (bpe, unigram); fewer for less text. Above 260, "
        "256 of them are the bytes that spell characters without a piece",
    )
    joint: bool = Field(
        True, description="use one vocabulary for both languages (section 5.1) instead of one for each"
    )
    sampling: Probability = Field(
        0.0,
        description="subword regularisation while training; 0 is off, 0.1 helps where text is scarce. bpe: "
        "probability that a merge is skipped (Provilkov et al. 2020). unigram: exponent alpha of Kudo (2018); "
        "smaller values sample more freely",
    )
    min_count: Positive = Field(1, description="occurrences below which a symbol becomes <unk> (words, characters)")
    lowercase: bool = Field(False, description="lower-case all text, outputs included")
    split_digits: bool = Field(
        False, description="make every digit a token of its own, so that numbers are easier to copy (bpe, unigram)"
    )
    symbols: tuple[Annotated[str, Limits(max_length=100, pattern=r"^<[a-z0-9_-]+>$", examples=["<bt>"])], ...] = (
        Field(
            (),
            description="words that are one token each (bpe, unigram), such as the tag <bt> at the beginning of "
            "back-translated sources (Caswell et al. 2019)",
        )
    )
    reserved: tuple[Text, ...] = Field(
        (),
        description="tokens that no text spells (bpe, unigram), such as the target language <to-fr>",
        internal=True,
    )
    normal_form: Annotated[int, Limits(ge=0, le=1)] = Field(
        0,
        description="version of the normal forms of sources and targets (manyheads/text/normalize.py), which a "
        "training sets; 0 in runs of earlier versions and of other programs",
        internal=True,
    )

    def check_symbols(self) -> None:
        """Refuse symbols for tokenizers without pieces."""
        if self.symbols and self.kind not in ("bpe", "unigram"):
            raise ValueError(f'tokenizer.symbols are for kind = "bpe" and "unigram", not for "{self.kind}".')


class ModelConfig(Section):
    """The Transformer (section 3; the base model of Table 3 is d_model 512, d_ff 2048, 8 heads, 6+6 layers)."""

    d_model: Annotated[int, Limits(gt=0, le=65_536)] = Field(
        256, description="width of the model, D: of embeddings, and of the input and output of every layer"
    )
    d_ff: Annotated[int, Limits(gt=0, le=1_048_576)] = Field(
        1024, description="inner width of the feed-forward layers, F (section 3.3)"
    )
    num_heads: Annotated[int, Limits(gt=0, le=65_536)] = Field(
        4, description="number of attention heads per layer, H; must divide d_model (section 3.2.2)"
    )
    num_encoder_layers: Layers = Field(
        3, description="number of encoder layers, N in section 3.1; not used by language models"
    )
    num_decoder_layers: Layers = Field(
        3, description="number of decoder layers, N in section 3.1; used by translators and language models"
    )
    dropout: Probability = Field(
        0.1, description="dropout on each sublayer's output (section 5.4); 0.3 is usual where text is scarce"
    )
    embedding_dropout: Probability | None = Field(
        None, description="dropout on token embedding plus position (section 5.4). Default: the value of dropout"
    )
    attention_dropout: Probability = Field(
        0.0, description="dropout on the attention weights; slow on a CPU", internal=True
    )
    word_dropout: Probability = Field(
        0.0, description="probability that a token's whole embedding is dropped, to be inferred from its context"
    )
    norm: Literal["pre", "post"] = Field(
        "pre", description="layer norm before each sublayer, or after it as in the paper"
    )
    norm_epsilon: Annotated[float, Limits(ge=1e-30, le=1)] = Field(
        1e-5, description="epsilon of layer norm, added to the variance", internal=True
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = Field(
        "sinusoidal", description="position encoding: sinusoidal (section 3.5), learned, or rotary (Su et al. 2021)"
    )
    max_positions: Annotated[int, Limits(ge=2, le=1_000_000)] = Field(
        1024, description="longest input of the model in tokens; rows of the learned position table"
    )
    activation: Literal["relu", "gelu", "gelu-tanh", "swish", "swiglu"] = Field(
        "relu",
        description="feed-forward activation: relu (section 3.3), gelu (BERT), gelu-tanh (GPT-2), swish, swiglu",
    )
    tied_embeddings: Literal["all", "decoder", "none"] = Field(
        "all",
        description="matrices that share their weights (section 3.4). all: source and target embedding and "
        "output; decoder: target embedding and output; none",
    )
    scale_embeddings: bool = Field(
        True, description="multiply token embeddings by sqrt(d_model) (section 3.4)", internal=True
    )
    bias: bool = Field(True, description="use biases in the linear layers", internal=True)
    token_types: Annotated[int, Limits(ge=0, le=1_000)] = Field(
        0, description="number of segment types with an embedding each, 2 in BERT; 0 is none", internal=True
    )
    source_end_mark: bool = Field(
        True, description="end the source with the mark </s>; false in models of OpenNMT-py", internal=True
    )
    embedding_norm: bool = Field(
        False, description="apply layer norm to the sum of the embeddings, as BERT does", internal=True
    )
    pooling: Literal["cls", "mean"] = Field(
        "mean",
        description="vector of a text that a classifier reads: of its first token (cls), or the mean over its "
        "tokens",
    )
    pooler: Literal["tanh", "relu"] = Field(
        "tanh", description="activation in the head of a classifier", internal=True
    )
    init_from: Text | None = Field(
        None,
        description="pre-trained model to start from, with its tokenizer and shape: a run directory, or the "
        "folder or hub name of a MarianMT model (translation), a BERT, DistilBERT or RoBERTa (classification, "
        "masked-lm), or a GPT-2 (language-modeling)",
    )
    init_vocabulary: Literal["keep", "extend", "replace"] = Field(
        "keep",
        description="vocabulary after init_from. keep: that of the pre-trained model; extend: also the new "
        "symbols of the training text (words, characters); replace: a new one by [tokenizer], in which known "
        "symbols keep their embeddings",
    )
    init_decoder_layers: Layers | None = Field(
        None,
        description="number of decoder layers to take from init_from, evenly spaced from the first to the last (1: "
        "the first): a student starts with the layers of its teacher (Shleifer and Rush 2020). none: all",
    )

    def check_widths(self) -> None:
        """Refuse widths unfit for heads or positions, and unscaled embeddings that positions would outweigh."""
        if self.d_model % self.num_heads:
            near = self.d_model - self.d_model % self.num_heads
            choices = f"{near} or {near + self.num_heads}" if near else str(self.num_heads)
            raise ValueError(
                f"model.d_model = {self.d_model} is not divisible by model.num_heads = {self.num_heads}. "
                f"Use d_model = {choices}."
            )
        if self.positions == "rotary" and (self.d_model // self.num_heads) % 2:
            raise ValueError(
                f'model.positions = "rotary" needs an even head width; d_model / num_heads = '
                f"{self.d_model // self.num_heads}. Use another num_heads."
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f'model.positions = "sinusoidal" needs an even d_model, not {self.d_model}.')
        if self.positions == "sinusoidal" and not self.scale_embeddings and self.tied_embeddings != "none":
            raise ValueError(
                "model.scale_embeddings = false with sinusoidal positions and tied embeddings drowns the tokens "
                'in the position signal. Use scale_embeddings = true, or tied_embeddings = "none".'
            )

    @property
    def position_limit(self) -> int:
        """Longest input of the model in tokens; only learned positions have a limit."""
        return self.max_positions if self.positions == "learned" else sys.maxsize


class SearchConfig(Section):
    """Search for translations (section 6.1)."""

    beam_size: Annotated[int, Limits(gt=0, le=1_000)] = Field(
        5, description="number of hypotheses that beam search keeps; 1 is greedy search"
    )
    length_penalty: Annotated[float, Limits(ge=0, le=10)] = Field(
        1.0,
        description="larger favours longer outputs: score = log-probability / length ** length_penalty",
    )
    max_length_ratio: Annotated[float, Limits(gt=0, le=1_000)] = Field(
        2.0,
        description="maximum output length in tokens: max_length_ratio x source tokens + max_length_offset",
    )
    max_length_offset: Annotated[int, Limits(ge=0, le=1_000_000)] = Field(
        20, description="tokens in the longest output beyond max_length_ratio x source tokens"
    )
    no_repeat_ngram: Annotated[int, Limits(ge=0, le=1_000_000)] = Field(
        0, description="length of the n-grams that must not occur twice in an output; 0 is off"
    )
    batch_tokens: Positive = Field(
        4_096, description="source tokens x beam size decoded together; lower it if memory runs out"
    )
    copy_literals: bool = Field(
        False,
        description="copy addresses, file names, telephone numbers such as +49 30 123456, versions such as v1.2, "
        "emoji, tags, code between backquotes, placeholders such as {name}, %s and $NAME, and lines without a "
        "letter; the text before and after each is translated apart, or as one sentence if the model was trained "
        "with this setting and data.augment",
    )
    lower_capitals: bool = Field(
        False,
        description="translate text in capitals as it would be written in a sentence, and write the translation in "
        "capitals",
    )

    @property
    def method(self) -> str:
        """The search beside a score: "beam 5", or "greedy search"."""
        return f"beam {self.beam_size}" if self.beam_size > 1 else "greedy search"


class EvaluationConfig(Section):
    """Scoring of outputs."""

    protocol: Literal["sacrebleu", "spacy-lowercase", "moses-lowercase"] = Field(
        "sacrebleu",
        description="text that BLEU, chrF and TER compare: detokenised and cased text (sacrebleu), or "
        "lower-cased tokens of spaCy or Moses as in some papers",
    )
