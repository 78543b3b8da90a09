"""The catalogue of what may be wrong after training."""

from __future__ import annotations

from manyheads.doctor.known import Known, finder

__all__ = ["KNOWN", "found"]

CURVES = (
    Known(
        "never-left-chance", "error",
        "The model has learned how often tokens come, and nothing else: the rate is too high or too low, the text "
        "is not aligned, or a mask hides the source.",
        "Run `manyheads doctor CONFIG` on the same configuration; it looks at rate, text and masks.",
    ),
    Known(
        "diverged", "error",
        "The learning rate was too high, or the warm-up too short, and the loss rose for good.",
        'Halve training.learning_rate, warm up longer, or set training.divergence = "rollback".',
    ),
    Known(
        "updates-skipped", "warning",
        "Gradients were not finite in many updates.",
        'Halve training.learning_rate, or train with training.precision = "fp32".',
    ),
    Known(
        "over-fitting", "warning",
        "The model went on to learn the training text by heart after the best validation.",
        "More dropout, less training (training.patience), a smaller model, more text. The best weights were kept.",
    ),
    Known(
        "under-fitting", "warning",
        "Training ended while validation was still getting better.",
        "Raise training.steps, training.epochs or training.max_minutes, in a new run: the schedule ends with them.",
    ),
    Known(
        "unfinished", "note",
        "Training was stopped, or is still running.",
        "Run the same `manyheads train` line again: it goes on.",
    ),
)  # fmt: skip

READING = (
    Known(
        "source-ignored", "error",
        "The model writes what is likely in general, not a translation: it was trained for too short a time or too "
        "fast, the pairs are misaligned, or nothing of the encoder reaches the decoder.",
        "Run `manyheads doctor CONFIG` for text and rate; then train longer.",
    ),
    Known(
        "training-differs", "error",
        "Training computed another loss: its decoder was fed what it had to predict (target-not-shifted in "
        "docs/doctor.md) or saw it through a mask; or weights or validation text are not those of the training.",
        "Look at what was changed in batches and masks of training. A loss that falls below 0.1 within some "
        "hundred updates of new text is copied, not learned.",
    ),
    Known(
        "context-ignored", "error",
        "The language model predicts a token as well after other text, as long as the token before it is the same: "
        "it was trained too short, or a mask hides the rest.",
        "Train longer, or with another rate: `manyheads doctor CONFIG` looks at it.",
    ),
    Known(
        "first-token-not-learned", "error",
        "The first target token was never a label in training (no start symbol, or a shift too many), or decoding "
        "begins from another symbol than training did.",
        "Feed [bos, y1, ..., yn] and predict [y1, ..., yn, eos]; see no-start-symbol in docs/doctor.md.",
    ),
    Known(
        "no-better-than-guessing", "error",
        "The classifier tells classes no better than always saying the most frequent one.",
        "Train longer or with another rate; see whether labels and texts belong together.",
    ),
    Known(
        "class-never-said", "warning",
        "A class is so rare in training that saying it never pays.",
        'Set training.class_weights = "balanced", or gather more texts of it.',
    ),
)  # fmt: skip

SEARCH = (
    Known(
        "beam-one-differs", "error",
        "A beam of 1 and greedy search are the same by definition; one of them ranks or ends differently.",
        "Look at what was changed in the search; else please report it with the configuration.",
    ),
    Known(
        "score-differs", "error",
        "The score of an output is not what the model gives it: decoding with a cache computes something else than "
        "training did.",
        "Look at what was changed in cache, positions or masks of decoding; else please report it.",
    ),
    Known(
        "loss-depends-on-batching", "error",
        "The loss of a text depends on the texts beside it: padding is read, or batch means are averaged.",
        "Mask padding, add up the losses of all tokens, and divide by their number.",
    ),
    Known(
        "export-differs", "error",
        "The export was made of other weights than the run has now, or was changed.",
        "Write it again: manyheads export RUN --to FORMAT OUT.",
    ),
)  # fmt: skip

OUTPUT = (
    Known(
        "too-short", "warning",
        "The search prefers short outputs, or the end symbol was learned in the wrong place (cut targets that keep "
        "it).",
        "Raise search.length_penalty, or lower search.beam_size; see whether training text is cut.",
    ),
    Known(
        "too-long", "warning",
        "The end symbol is not learned, or search.length_penalty is too high.",
        "Train longer; set search.length_penalty = 1.",
    ),
    Known(
        "never-ends", "warning",
        "Outputs were cut at the longest length because no end symbol came.",
        "Train longer; see whether training targets are cut. If outputs are right, raise search.max_length_ratio.",
    ),
    Known(
        "nothing-said", "warning",
        "Some outputs are empty: the end symbol comes first, often because of empty or misaligned training pairs.",
        "Look at empty and misaligned lines (`manyheads doctor CONFIG`), or take a smaller beam.",
    ),
    Known(
        "repeats-itself", "warning",
        "The model has learned too little, or text unlike that of training is translated; beams make it worse.",
        "Train longer. For now, search.no_repeat_ngram = 4 forbids it.",
    ),
    Known(
        "same-output", "error",
        "The model answers different sources with the same output.",
        "It does not read its source: see source-ignored.",
    ),
    Known(
        "copies-its-source", "warning",
        "The model has learned to copy: the training text holds lines that nobody translated.",
        "Remove them (`manyheads doctor CONFIG` names them: source-copied) and train anew.",
    ),
    Known(
        "writes-unknown", "warning",
        "The vocabulary lacks what the outputs need.",
        "Use subwords with byte_fallback; for whole words a smaller tokenizer.min_count.",
    ),
)  # fmt: skip

INSIDE = (
    Known(
        "weights-not-finite", "error",
        "Training ran into numbers that are none, and they were saved.",
        "Train anew with half the learning rate, or go back to an earlier checkpoint.",
    ),
    Known(
        "idle-heads", "note",
        "Heads that look at all tokens alike, or always at the same mark, whatever the text. A few are usual "
        "(Michel et al. 2019).",
        "If most are idle: train longer, or take fewer heads. Else nothing.",
    ),
    Known(
        "unused-vocabulary", "warning",
        "The vocabulary was made for other or far more text than the model was trained on.",
        "Take a smaller tokenizer.vocab_size, made from the text itself.",
    ),
)  # fmt: skip

KNOWN = (*CURVES, *READING, *SEARCH, *OUTPUT, *INSIDE)
found = finder(KNOWN)
