"""The task of translation: an encoder-decoder that learns from pairs of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitext.file_names import Split
from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.config.schema import Config
from manyheads.data.store import TokenStore
from manyheads.data.training_text import (
    Corpus,
    available_pairs,
    describe_long,
    held_out,
    language_profiles,
    longest_side,
)
from manyheads.errors import UsageError
from manyheads.evaluation import paired_bootstrap
from manyheads.evaluation.scores import Scores, score
from manyheads.evaluation.verdicts import judge_empty
from manyheads.inference.engines import engine_of
from manyheads.inference.languages import LANGUAGES
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import STAGES, Translator
from manyheads.inference.translation.unlike_training import SOURCES, SourceModel, fit_source_model
from manyheads.reports import Listener, ValidationReport
from manyheads.tasks.translation.augmented_batches import augmented_batches
from manyheads.tasks.translation.confidence import store_confidence
from manyheads.tasks.translation.mean_scoring import MeanEvaluation, MeanValidation
from manyheads.tasks.translation.scoring import Evaluation, Validation, evaluate_texts
from manyheads.tensors.models import load_run
from manyheads.text.sentences import sentence_spans
from manyheads.text.tokenizer import BOS, EOS, Tokenizer, TokenizerPair
from manyheads.text.training import train_tokenizers
from manyheads.training.batch_sources import CorpusUpdates, PairBatches
from manyheads.training.objective import corpus_nll, translation_loss
from manyheads.training.preparation import count_ids, prepare_tokenizers, tokenise
from manyheads.training.scored_text import ScoredText, training_overlap
from manyheads.training.task import Differences, LongTexts, SourcesAndReferences, Task, TrainingTask

_MODELLED_PAIRS = 200_000  # evenly spread over the corpus
_COUNTED_PAIRS = 2_000  # pairs whose sentences are counted
_CARD_SENTENCES = 1_000  # sentences scored for a model card


class TranslationTask(Task[Translator]):
    """Translation from a source to a target language."""

    name = "translation"
    scores_outputs = True
    token_rows: ClassVar[Mapping[str, str]] = {
        "source_embedding.tokens.weight": "source",
        "target_embedding.tokens.weight": "target",
        "output.weight": "target",
        "output.bias": "target",
    }

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """Prepare tokenizers, token ids and the data of each direction of a translator."""
        training, texts = config.training, corpus.train
        tokenizers = prepare_tokenizers(self, config, run, texts.sides, listener)
        store = tokenise(config, run, corpus, tokenizers, listener, max_length=longest_side(config))
        if config.data.augment is None and not config.data.terms:
            maker = PairBatches(config, texts, store, tokenizers)
        else:
            maker = augmented_batches(config, run, (texts, store), tokenizers, listener)
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            loss=partial(translation_loss, smoothing=training.label_smoothing, r_drop=training.r_drop),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=_validation(config, corpus, tokenizers),
            finish=lambda: store_confidence(run, listener),
            too_long=store.too_long,
            documents=lambda: {
                LANGUAGES: {name: profile.to_json() for name, profile in language_profiles(config, texts).items()},
                SOURCES: _source_model(config, maker, corpus, tokenizers.source).to_json(),
            },
        )

    def learn_tokenizers(self, config: Config, sources: Sequence[str], targets: Sequence[str]) -> TokenizerPair:
        """Learn the tokenizers of both sides."""
        settings = config.tokenizer
        of_all = "+".join(dict.fromkeys(chain(*config.directions)))
        names = (of_all, of_all) if settings.joint else config.languages
        symbols = (*settings.reserved, *self.reserved_symbols(config))
        settings = settings.model_copy(update={"reserved": symbols})
        return train_tokenizers(settings, sources, targets, *names)

    def reserved_symbols(self, config: Config) -> list[str]:
        """Return the symbols that the stages of a translation reserve in a vocabulary."""
        return [symbol for stage in reversed(STAGES) for symbol in stage.reserved_symbols(config)]

    def sample_sides(self, training: TrainingTask, most: int) -> Iterator[tuple[str, Tokenizer, Sequence[str]]]:
        """Yield name, tokenizer and texts of both sides of both splits."""
        source, target, valid = training.tokenizers.source, training.tokenizers.target, training.corpus.valid[:most]
        sources, targets = training.corpus.train.sides(most)
        yield "train, source", source, sources
        yield "valid, source", source, [pair.source for pair in valid]
        yield "train, target", target, targets
        yield "valid, target", target, [pair.target for pair in valid]

    def count_tokens(self, training: TrainingTask) -> Iterator[tuple[str, Tokenizer, NDArray[np.int64]]]:
        """Yield each vocabulary with its token frequencies in train."""
        store, tokenizers = training.store, training.tokenizers
        assert isinstance(store, TokenStore)
        source = count_ids(store.source.values, tokenizers.source)
        target = count_ids(store.target.values, tokenizers.target)
        if tokenizers.joint:
            yield "vocabulary", tokenizers.source, source + target
        else:
            yield "source vocabulary", tokenizers.source, source
            yield "target vocabulary", tokenizers.target, target

    def count_long(self, training: TrainingTask) -> LongTexts:
        """Count the pairs with a side longer than the model takes."""
        examples = len(training.store) + training.too_long
        return LongTexts(training.too_long, examples, longest_side(training.config), dropped=True)

    def describe_lengths(self, training: TrainingTask) -> dict[str, str]:
        """Describe the held-out pairs longer than the model takes."""
        config = training.config
        splits: tuple[Split, ...] = ("valid", "test") if config.data.has_test else ("valid",)
        long = [
            describe_long(config, training.tokenizers, held_out(config, split), f"data.{split}") for split in splits
        ]
        return {f"length of {split}": text for split, text in zip(splits, long, strict=True) if text}

    def evaluate(
        self, model: Translator, config: Config, text: ScoredText, listener: Listener
    ) -> Evaluation | MeanEvaluation:
        """Score a translator; without a choice of languages, every direction is scored."""
        if config.multilingual and text.source is None and not any(text.languages):
            return self.evaluate_directions(model, config, text, listener)
        source, target = text.languages
        translator = replace(model, config=config, engine=engine_of(model.model)).to(source=source, target=target)
        config = translator.config
        sources, references = text.pairs(config)
        result = evaluate_texts(translator, sources, references, listener, str(text.source or f"data.{text.split}"))
        if text.split == "train" and text.source is None:
            return result
        before = model.config.for_direction(*config.languages)
        trained = before.data.model_copy(update={"root": config.data.root})
        own = before.model_copy(update={"data": trained})
        return replace(result, overlap=training_overlap(own, sources, references))

    def evaluate_directions(
        self, model: Translator, config: Config, text: ScoredText, listener: Listener
    ) -> MeanEvaluation:
        """Score every trained direction whose text is named."""
        parts = {}
        for view in config.for_directions(text.split):
            part = self.evaluate(model, config, replace(text, languages=view.languages), listener)
            assert isinstance(part, Evaluation)
            parts["-".join(view.languages)] = part
        if not parts:
            raise UsageError(
                "no direction of this run names a test set. Give --split valid, or --to and two files."
            )
        return MeanEvaluation(config.task, parts)

    def compare(
        self,
        models: Sequence[Translator],
        configs: Sequence[Config],
        text: SourcesAndReferences,
        listener: Listener,
    ) -> Differences:
        """Compare two translators by BLEU and chrF."""
        (sources, references), outputs = text, []
        for model, config in zip(models, configs, strict=True):
            listener.message(f"translating {len(sources):,} sentences, {config.search.method}")
            with listener.phase("translating", len(sources), "sentences") as advance:
                engine = model.model if model.torch_engine else model.engine
                results = translate_in_groups(Translator(config, model.tokenizers, engine), sources, advance)
            outputs.append([result.translation for result in results])
        own, other = outputs
        language, methods = configs[0].data.target, dict.fromkeys(config.search.method for config in configs)
        return Differences(
            results=(
                paired_bootstrap(own, other, references, metric="bleu", language=language),
                paired_bootstrap(own, other, references, metric="chrf", language=language),
            ),
            description=f"{len(sources):,} sentences, {' against '.join(methods)}",
            empty=tuple(judge_empty({"sources": sources, "references": references})),
        )

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """Return the loss on pairs, in nats a target token."""
        loaded = Translator.load(run, device="cpu")
        if not loaded.config.multilingual:
            return _mean_loss(loaded, pairs)
        views = loaded.config.for_directions()
        own = ((view, available_pairs(view, "valid", len(pairs) // len(views))) for view in views)
        return fmean(_mean_loss(replace(loaded, config=view), valid) for view, valid in own if valid)

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """Translate and score held-out pairs, and return the line for a card."""
        return card_line_of_translator(load_run(run.path))


TASK = TranslationTask()


def _validation(
    config: Config, corpus: Corpus, tokenizers: TokenizerPair
) -> Callable[..., Callable[[int], ValidationReport]]:
    """Return the maker of the validation, of each direction where there are several."""
    if not config.multilingual:
        return partial(Validation, config, corpus.valid, tokenizers)
    directions = {name: (view, held_out(view, "valid")) for name, view in config.by_direction().items()}
    return partial(MeanValidation, directions, tokenizers)


def _mean_loss(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Return the loss of the pairs of one direction in nats a target token."""
    source = translator.tokenizers.source.encode([pair.source for pair in pairs])
    target = translator.tokenizers.target.encode([pair.target for pair in pairs])
    nats, tokens = corpus_nll(translator.model, source, target, bos=BOS, eos=EOS, prefix=translator.prefix)
    return nats / tokens


def card_line_of_translator(opened: LoadedModel) -> str | None:
    """Return a line for a card: BLEU and chrF with signatures, by the search of the run; None without the text."""
    config, most = opened.config, _CARD_SENTENCES // len(opened.directions())
    found = {"-".join(view.config.languages): _card_scores(view, most) for view in opened.directions("test")}
    scored = {name: scores for name, scores in found.items() if scores is not None}
    if not scored:
        return None
    if not config.multilingual:
        ((count, scores),) = scored.values()
        return scores_line(config, count, scores)
    total, all_scores = sum(count for count, _ in scored.values()), [scores for _, scores in scored.values()]
    bleu = ", ".join(f"{name} {scores.bleu:.2f}" for name, (_, scores) in scored.items())
    return (
        f"- Scores on {total:,} sentences of its test set, {config.search.method}: "
        f"BLEU {fmean(scores.bleu for scores in all_scores):.2f} = {bleu} ({all_scores[0].signature['bleu']}), "
        f"chrF {fmean(scores.chrf for scores in all_scores):.2f} ({all_scores[0].signature['chrf']})"
    )


def _card_scores(opened: LoadedModel, most: int) -> tuple[int, Scores] | None:
    """Return the number of the first test sentences of one direction, and its scores on them; None without text."""
    config = opened.config
    pairs = [
        pair for pair in available_pairs(config, "test", most) if has_text(pair.source) and has_text(pair.target)
    ]
    if not pairs:
        return None
    results = Translator(config, opened.tokenizers, opened.model).translate([pair.source for pair in pairs])
    outputs, references = [result.translation for result in results], [pair.target for pair in pairs]
    return len(pairs), score(outputs, references, language=config.data.target, protocol=config.evaluation.protocol)


def scores_line(config: Config, sentences: int, scores: Scores) -> str:
    """Return a line for a card: BLEU and chrF of a translator on the first sentences of its test set."""
    first = "the first " if sentences == _CARD_SENTENCES else ""
    return (
        f"- Scores on {first}{sentences:,} sentences of its test set, {config.search.method}: "
        f"BLEU {scores.bleu:.2f} ({scores.signature['bleu']}), chrF {scores.chrf:.2f} ({scores.signature['chrf']})"
    )


def _source_model(config: Config, maker: PairBatches, corpus: Corpus, tokenizer: Tokenizer) -> SourceModel:
    """Fit the model of the sources that the first epoch of a training shows, with their augmentation."""
    epoch = maker.epoch(0)
    rows = np.arange(0, len(maker.store), -(-len(maker.store) // _MODELLED_PAIRS))
    sources = [source for source, _ in epoch.rows(rows, np.random.default_rng(config.training.seed))]
    texts = corpus.train.sides(_COUNTED_PAIRS)[0]
    several = sum(len(sentence_spans(text, config.data.source)) > 1 for text in texts) / len(texts)
    valid = tokenizer.encode([pair.source for pair in corpus.valid])
    return fit_source_model(sources, valid, tokenizer.size, round(several, 4))
