"""The catalogue of what may be wrong before training."""

from __future__ import annotations

from manyheads.doctor.known import Known, finder

__all__ = ["KNOWN", "found"]

TEXT = (
    Known(
        "languages-swapped", "error",
        "data.source and data.target, or the two files of the split, are the wrong way round.",
        "Swap data.source and data.target, or the names of the two files.",
    ),
    Known(
        "languages-mixed", "warning",
        "Both sides of some pairs are in one language: the corpus was put together by a program that left lines "
        "untranslated, or took a page in the wrong language.",
        "Remove these lines on both sides. A model that learns from them answers in the wrong language.",
    ),
    Known(
        "source-copied", "warning",
        "Lines that nobody translated stand on both sides.",
        "Remove them on both sides: copies are the noise that hurts a translator most (Khayrallah and Koehn 2018), "
        "for it learns to copy what it does not know.",
    ),
    Known(
        "misaligned", "error",
        "Lines were sorted, shuffled, lost or broken in one of the two files alone, so that line i of one is not "
        "the translation of line i of the other.",
        "Look at the two files side by side from the first line named on, and make them anew from their origin, "
        "splitting at line feeds alone.",
    ),
    Known(
        "encoding-damaged", "warning",
        "Text was written in one encoding and read in another on its way, or letters that an encoding lacks were "
        "replaced.",
        "Read the original file anew with its right encoding (often CP949 for Korean, Windows-1252 for German) and "
        "write UTF-8; or repair misread lines (the package ftfy does), and drop those whose letters are lost.",
    ),
    Known(
        "html-entities", "warning",
        "The text comes from web pages or a Moses pipeline, and their writing of some characters was kept.",
        "Unescape it once, on both sides and in all splits: html.unescape in Python.",
    ),
    Known(
        "much-duplicated", "warning",
        "The corpus holds the same pairs again and again, as subtitles, menus and notices do.",
        "Set data.drop_duplicates = true, or keep so few that they do not crowd out the rest.",
    ),
    Known(
        "held-out-in-train", "error",
        "Pairs of the validation or test set also stand in train, so that their score is no estimate for new text.",
        "Set data.drop_overlap = true, or remove them from train.",
    ),
    Known(
        "near-copies-in-train", "warning",
        "Held-out lines differ from lines of train in one word or in punctuation: they were split off at random.",
        "Put all near copies of a sentence on one side of the split, or use an official test set.",
    ),
    Known(
        "empty-lines", "warning",
        "One side of many pairs has no text.",
        "They are dropped. See whether lines were lost when the files were made.",
    ),
    Known(
        "odd-lengths", "warning",
        "One side of many pairs is far longer than the other: they are no translations of each other, or several "
        "sentences stand beside one.",
        "They are dropped (data.max_ratio). See whether the files belong together; for unlike scripts a larger "
        "data.max_ratio may be right.",
    ),
    Known(
        "cut-or-dropped", "warning",
        "data.max_length is shorter than many of the texts.",
        "Raise data.max_length (memory grows with it), or split the text into sentences.",
    ),
    Known(
        "few-validation-texts", "warning",
        "The validation set is so small that chance decides which checkpoint is best.",
        "Hold back a few hundred texts that are like those the model is for.",
    ),
    Known(
        "labels-contradict", "warning",
        "The same text stands there with different labels.",
        "Decide on one of them, or drop these texts: no model can tell them apart.",
    ),
    Known(
        "labels-unbalanced", "note",
        "Some classes are rare.",
        'Look at macro F1 instead of accuracy, and try training.class_weights = "balanced".',
    ),
    Known(
        "labels-missing", "warning",
        "A class of train does not occur in the validation set, so that nothing is known of how well it is told.",
        "Split anew, so that each class is in both.",
    ),
)  # fmt: skip

TOKENS = (
    Known(
        "many-unknown", "warning",
        "The vocabulary does not cover the text: it was made from other text, tokenizer.min_count is high, or "
        "byte_fallback is off.",
        "Use tokenizer.byte_fallback = true (bpe, unigram), more text, or a smaller tokenizer.min_count (words).",
    ),
    Known(
        "round-trip", "warning",
        "What the tokenizer makes of a text does not give the text back, so the model cannot write it.",
        'Use kind = "bpe" or "unigram" with byte_fallback, and lowercase = false if upper case matters.',
    ),
    Known(
        "vocabulary-too-large", "warning",
        "There are more pieces than so little text can teach: rare ones stay as they were drawn.",
        "Take a smaller tokenizer.vocab_size. For a few thousand pairs 2,000 to 4,000 pieces do, for a few ten "
        "thousand 6,000 to 8,000.",
    ),
)  # fmt: skip

SETTINGS = (
    Known(
        "rate-too-high", "error",
        "training.learning_rate is far above what trains a model of this width with batches of this size; it came "
        "from another optimiser, or a digit is missing.",
        "Start from the rate named, or from the recipe nearest to yours.",
    ),
    Known(
        "rate-too-low", "error",
        "training.learning_rate is so low for so few updates that weights stay near where they were drawn.",
        "Use a higher rate or more updates. Rates such as 2e-5 are for fine-tuning (model.init_from).",
    ),
    Known(
        "warm-up-too-long", "error",
        "training.warmup_steps was taken from a longer training.",
        "Warm up for a tenth of the updates, a few hundred at the least.",
    ),
    Known(
        "post-norm-without-warm-up", "warning",
        "In a post-norm Transformer the gradients near the output are large at the start (Xiong et al. 2020).",
        'Set training.warmup_steps to a few hundred or more, or model.norm = "pre".',
    ),
    Known(
        "less-than-an-epoch", "warning",
        "training.steps and the batch size do not add up to one pass over the text.",
        "Use more updates, or larger batches; or less text (data.limit), if that is meant.",
    ),
    Known(
        "very-many-epochs", "note",
        "The text is gone through so often that a model learns it by heart.",
        "Set training.patience, so that training ends when validation no longer gets better.",
    ),
    Known(
        "model-too-large", "warning",
        "The model has far more parameters than the text has tokens, and learns it by heart.",
        "Take a narrower model with fewer layers, more dropout (0.3), or more text: `manyheads init` chooses.",
    ),
    Known(
        "best-never-chosen", "note",
        "training.save_every is longer than the training: it is validated once, at the end.",
        "Set training.save_every to a tenth of the updates.",
    ),
    Known(
        "memory", "error",
        "Weights, optimiser and the largest batch need more than this machine has free.",
        "Halve training.batch_tokens, or set training.accumulation = 2 (the same updates in two parts), or take a "
        "smaller model.",
    ),
    Known(
        "takes-days", "warning",
        "So many updates of this size take long on this machine.",
        "Set training.max_minutes, take a smaller model, or train on a GPU.",
    ),
)  # fmt: skip

START = (
    Known(
        "wrong-at-the-start", "error",
        "A new model knows nothing, so its loss must be near that of a blind guess. Weights, scale or labels are "
        "not as they should be.",
        "Look at what was changed in the model's initial weights, and at model.scale_embeddings.",
    ),
)  # fmt: skip

KNOWN = (*TEXT, *TOKENS, *SETTINGS, *START)
found = finder(KNOWN)
