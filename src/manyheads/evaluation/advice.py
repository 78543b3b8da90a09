"""Settings that may mend what was found, without those that a configuration has already or that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from manyheads.config.schema import Config

_Choices = Mapping[str, bool]  # assignments, and whether they differ from the configuration and have an effect

_DROPOUT, _PATIENCE, _NGRAM, _WARM_UP = 0.3, 5, 4, 400


def _less_fitting(config: Config) -> _Choices:
    return {
        "data.limit = none": config.data.limit is not None,
        f"model.dropout = {_DROPOUT}": config.model.dropout < _DROPOUT,
        f"training.patience = {_PATIENCE}": config.training.patience is None,
    }


def _longer_training(config: Config) -> _Choices:
    """Settings for more updates: twice the setting that ends the training."""
    training = config.training
    limited = training.max_minutes is not None
    return {
        f"training.max_minutes = {2 * (training.max_minutes or 0):g}": limited,
        f"training.epochs = {2 * (training.epochs or 0)}": not limited and training.epochs is not None,
        f"training.steps = {2 * training.steps}": not limited and training.epochs is None,
    }


def _gentler_updates(config: Config) -> _Choices:
    training = config.training
    warm_up = max(_WARM_UP, 2 * training.warmup_steps)
    return {
        f"training.learning_rate = {training.learning_rate / 2:g}": True,
        f"training.warmup_steps = {warm_up}": training.epochs is not None or 2 * warm_up < training.steps,
    }


def _finite_updates(config: Config) -> _Choices:
    """Settings against gradients that are not finite."""
    return {
        f"training.learning_rate = {config.training.learning_rate / 2:g}": True,
        'training.precision = "fp32"': config.training.precision != "fp32",
    }


def _longer_outputs(config: Config) -> _Choices:
    """Settings of a beam search for longer outputs; a greedy one has no choice of lengths."""
    search = config.search
    return {
        f"search.length_penalty = {search.length_penalty + 0.5:g}": search.beam_size > 1,
        "search.beam_size = 1": search.beam_size > 1,
    }


def _shorter_outputs(config: Config) -> _Choices:
    search = config.search
    lower = min(1.0, search.length_penalty / 2)
    return {f"search.length_penalty = {lower:g}": search.beam_size > 1 and search.length_penalty > 0}


def _balanced_classes(config: Config) -> _Choices:
    return {'training.class_weights = "balanced"': config.training.class_weights != "balanced"}


def _less_memory(config: Config) -> _Choices:
    """Settings for smaller batches, and for batches in more parts."""
    training = config.training
    of_sentences = training.batch_sentences is not None
    return {
        f"training.accumulation = {2 * training.accumulation}": True,
        f"training.batch_sentences = {(training.batch_sentences or 0) // 2}": (training.batch_sentences or 0) > 1,
        f"training.batch_tokens = {training.batch_tokens // 2}": not of_sentences,
    }


def _known_symbols(config: Config) -> _Choices:
    """Settings for a vocabulary that covers the text."""
    tokenizer = config.tokenizer
    pieces = tokenizer.kind in ("bpe", "unigram")
    return {
        "tokenizer.min_count = 1": not pieces and tokenizer.min_count > 1,
        'tokenizer.kind = "bpe"': tokenizer.kind in ("words", "characters"),
    }


def _augmentation(setting: str | None = None) -> Callable[[Config], _Choices]:
    """Return the settings for lines of a challenge: one of the search, and the augmentation."""

    def choices(config: Config) -> _Choices:
        of_search = {f"search.{setting} = true": not getattr(config.search, setting)} if setting else {}
        return {**of_search, "data.augment = 0.5": config.data.augment is None}

    return choices


_COPIED_TEXT = _augmentation("copy_literals")
_SETTINGS: Mapping[str, Callable[[Config], _Choices]] = {
    "over-fitting": _less_fitting,
    "model-too-large": _less_fitting,
    "very-many-epochs": lambda config: {f"training.patience = {_PATIENCE}": config.training.patience is None},
    "under-fitting": _longer_training,
    "less-than-an-epoch": _longer_training,
    "diverged": _gentler_updates,
    "updates-skipped": _finite_updates,
    "nothing-said": _longer_outputs,
    "too-short": _longer_outputs,
    "too-long": _shorter_outputs,
    "never-ends": lambda config: {f"search.max_length_ratio = {2 * config.search.max_length_ratio:g}": True},
    "repeats-itself": lambda config: {
        f"search.no_repeat_ngram = {_NGRAM}": config.spec.decodes and not config.search.no_repeat_ngram
    },
    "labels-unbalanced": _balanced_classes,
    "class-never-said": _balanced_classes,
    "memory": _less_memory,
    "many-unknown": _known_symbols,
    "writes-unknown": _known_symbols,
    "much-duplicated": lambda config: {"data.drop_duplicates = true": not config.data.drop_duplicates},
    "held-out-in-train": lambda config: {"data.drop_overlap = true": not config.data.drop_overlap},
    "takes-days": lambda config: {"training.max_minutes = 600": config.training.max_minutes is None},
    "cut-or-dropped": lambda config: {f"data.max_length = {2 * config.data.max_length}": True},
    # groups of `doctor RUN --challenge`
    "single words": _augmentation(),
    "capitals": _augmentation("lower_capitals"),
    "no end mark": _augmentation(),
    "two sentences": _augmentation(),
    "texts inside of sentences": _COPIED_TEXT,
    **dict.fromkeys(
        ("numbers", "URLs", "emoji", "placeholders", "tags", "empty-looking lines", "other scripts"), _COPIED_TEXT
    ),
}


def settings_to_try(name: str, config: Config) -> list[str]:
    """Return assignments such as "model.dropout = 0.3" that may mend a finding or a defect of the outputs.

    Args:
        name: name of a finding of the doctor, of a group of its challenge, or of a defect in `outputs.DEFECTS`.
        config: configuration of the training; an assignment that it holds already is left out.
    """
    choices = _SETTINGS[name](config) if name in _SETTINGS else {}
    return [assignment for assignment, helps in choices.items() if helps]


def with_settings(advice: str, name: str, config: Config) -> str:
    """Return an advice, and the settings to try where there are any."""
    settings = settings_to_try(name, config)
    return f"{advice}; or set {' or '.join(settings)}" if settings else advice
