"""What is told at each exhibit, in English and in Korean."""

from __future__ import annotations

from typing import Literal

from manyheads.doctor.museum.korean import KOREAN
from manyheads.doctor.museum.telling import Labels, Words

__all__ = ["LABELS", "LANGUAGES", "SYSTEMS", "WORDS", "Labels", "Language", "Words"]

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")

ENGLISH = {
    "no-start-symbol": Words(
        "The first word is never learned",
        "The loss falls to nothing, and yet every output begins in the middle of the sentence.",
        "The rows of ids are shifted by one, as they should be, but nothing stands in front of them. So the "
        "first token of a target is fed and never asked for. At the start of decoding the model gets a symbol it "
        "has never seen, and answers with what usually comes second.",
        "Put the start symbol in front of each target; now the first real token is the first label.",
    ),
    "wrong-tokenizer": Words(
        "The target goes through the source's tokenizer",
        "Training runs, the loss falls; here is what the model is taught to write.",
        "Both texts are encoded by the tokenizer of the source language. Its numbers mean other words in the "
        "target's vocabulary, and what it does not know is <unk>. Nothing complains: ids are ids.",
        "Each side its own tokenizer.",
    ),
    "padding-mask-on-queries": Words(
        "A padding mask over rows instead of columns",
        "Position 3 is padding. Two targets differ from position 4 on only, so positions 1 to 3 should agree.",
        "A mask of the shape (B, 1, T, 1) takes every key away from a padded query. Scores that are all equally "
        "low become equal weights after the softmax: the query sees everything, the future too. Keys that are "
        "padding stay visible. It strikes at decoding when the first symbol is padding.",
        "One axis further: the mask belongs to the keys.",
    ),
    "weak-embeddings": Words(
        "Words drowned by positions",
        "Training starts, slowly. The encoder hears where a token stands, hardly which one it is.",
        "Xavier's rule divides by the number of rows, as for a linear layer; but an embedding matrix of 58,101 "
        "rows is no linear layer. Its rows come out at about 0.006, beside positions of about 0.7, and nobody "
        "multiplies them by sqrt(d_model).",
        "Rows of deviation 1 / sqrt(d_model), times sqrt(d_model), as section 3.4 of the paper has it.",
    ),
    "target-not-shifted": Words(
        "The decoder is fed what it must predict",
        "A loss that falls and falls. But the targets are random numbers.",
        "Input and labels are the same rows. The look-ahead mask allows a position to see itself, so the model "
        "copies its input to its output; it learns nothing else. No error is raised, and in decoding, where the "
        "next token is not there to be copied, it repeats itself.",
        "Feed all but the last, predict all but the first. Now the loss stays where chance has it.",
    ),
    "tested-on-training-data": Words(
        "Tested on sentences from training",
        "A random fifth is kept for testing. Repeating the nearest training sentence already does well.",
        "The corpus holds many sentences that are nearly the same, and a random split puts them on both sides. "
        "The random generator has no seed, so that after a restart the model trains on what was test text before.",
        "Train on the training data and score on the official test set.",
    ),
    "scaled-by-model-width": Words(
        "Divided by the wrong square root",
        "It trains. Attention looks a little pale.",
        "Scores are divided by sqrt(d_model), but what is compared are queries of one head's width. With eight "
        "heads they come out sqrt(8) = 2.8 times too small: the softmax can hardly tell keys apart.",
        "Divide by the square root of the head's width.",
    ),
    "shared-projections": Words(
        "Eight heads, one projection",
        "It runs and it trains, with surprisingly few parameters.",
        "The input is cut into eight pieces first, and one 8 x 8 matrix projects each of them. The heads cannot "
        "learn different questions, and each sees an eighth of the input only.",
        "Project the whole width, then cut.",
    ),
    "no-source-padding-mask": Words(
        "Padding is read like text",
        "The same sentence, in batches of different lengths.",
        "The encoder gets no mask, so padding is attended to like any other token. A translation changes with "
        "the neighbours it happens to have.",
        "Tell the encoder where padding is.",
    ),
    "dropout-on-residual": Words(
        "Dropout on the stream that carries everything",
        "Six layers, dropout 0.1. It trains, but not as well as it should.",
        "Dropout comes after the norm, so it falls on the sum of input and sublayer: on the residual connection. "
        "What is dropped there is gone for all layers above, and there are two such places a layer.",
        "Drop the sublayer's output before it is added.",
    ),
    "end-kept-on-cut-targets": Words(
        "Cut in mid-sentence, and then: the end",
        "Rows are cut to 32 tokens so that they fit. Look at the last token of the long one: 2 is the end.",
        "The cut target gets an end symbol all the same. The model is taught that a sentence may end anywhere, "
        "and does so. The source is cut as well, and nobody is told.",
        "Leave pairs that are too long out.",
    ),
    "mean-of-batch-means": Words(
        "A perplexity that depends on the batch size",
        "The same model on the same five sentences.",
        "Each batch's mean loss is averaged again. A batch of few tokens counts as much as one of many, so that "
        "the figure moves with the batch size, and cannot be compared with anybody's.",
        "One mean over all tokens, then the exponent.",
    ),
    "not-bleu": Words(
        "What is called BLEU",
        "The first line leaves out one word, and everything after it has moved by one place. In the second, one "
        "of two outputs is missing.",
        "Words are compared with words at the same place, and as Python takes a word for a list of letters, "
        "n-grams are counted over letters. Whatever raises an error is left out of the mean: a missing output "
        "costs nothing.",
        "Ask sacreBLEU.",
    ),
    "fixed-padding": Words(
        "Everything is padded to 64",
        "Sentences of about a dozen tokens.",
        "Each row is padded to the largest length there may ever be, whatever its batch holds. Most of the time "
        "of training is spent on padding.",
        "Pad to the longest row of the batch.",
    ),
    "schedule-without-state": Words(
        "A schedule that forgets",
        "The rate rises and falls as it should, until the program is interrupted.",
        "The schedule counts its steps in an attribute. It has no state_dict, so nothing of it is saved, and "
        "after a resume the warm-up begins again from zero, with weights that are long past it.",
        "A schedule of torch has a state that can be saved.",
    ),
    "position-limit": Words(
        "The hundred and first token",
        "All is well up to a hundred tokens.",
        "Learned positions stand in a table of a hundred rows. Nothing says so; the first longer text ends in an "
        "IndexError from the depths of torch (on a GPU, in a CUDA error that takes the process with it).",
        "Positions that are computed have no end. (Or: check the length and say the limit.)",
    ),
    "mask-fill": Words(
        "-1e-12",
        "Random tokens again, and again the loss falls below what chance allows.",
        "-1e-12 is almost zero: meant was -1e12. Scores that should vanish become average scores, and every "
        "position sees the whole target. (-1e12, -1e20 hide, but half precision cannot hold them; -10000 hides "
        "as long as scores stay small.)",
        "Minus infinity, or the least number of the type.",
    ),
    "mask-as-value": Words(
        "The mask in the place of the value",
        "The task is to repeat five tokens of the source. The loss stays where guessing has it.",
        "attend(query, key, mask): the third argument is the value. So attention averages the mask, whatever the "
        "source says, and the masking itself is left out. Shapes fit, nothing is raised.",
        "Query, key, value, mask; best by name.",
    ),
}

WORDS: dict[Language, dict[str, Words]] = {"en": ENGLISH, "ko": KOREAN}
LABELS: dict[Language, Labels] = {
    "en": Labels("met in", "What you see", "What is wrong", "The doctor", "The mend", "After it"),
    "ko": Labels("발견된 곳", "겉으로 보이는 것", "무엇이 잘못되었나", "닥터의 진단", "고치는 법", "고친 뒤"),
}
# Where defects were met.
SYSTEMS: dict[Language, dict[str, str]] = {
    "en": {
        "notebook": "a translation notebook",
        "lab": "a university lab",
        "attention": "a notebook on self-attention",
        "repository": "a much-copied repository",
    },
    "ko": {
        "notebook": "번역 모델 노트북",
        "lab": "대학 실습 자료",
        "attention": "셀프 어텐션 노트북",
        "repository": "널리 복사된 저장소",
    },
}
