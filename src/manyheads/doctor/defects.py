"""The catalogue: every defect the doctor knows by name, with its cause and cure.

`number` is that of the museum; defects without one are known too, but have no room there.
"""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.doctor.report import PAGE, Finding, Severity

__all__ = ["CATALOGUE", "Defect", "found"]


@dataclass(frozen=True)
class Defect:
    """A known defect.

    Attributes:
        name: kebab-case, stable.
        number: of its exhibit, or None.
        title: what it is, for a list.
        severity: usual.
        cause: what it most likely comes from.
        cure: what to do.
    """

    name: str
    number: int | None
    title: str
    severity: Severity
    cause: str
    cure: str

    @property
    def page(self) -> str:
        """Where it is explained."""
        return f"{PAGE}#{self.name}"


def found(name: str, evidence: str, severity: Severity | None = None) -> Finding:
    """A finding of a known defect."""
    defect = CATALOGUE[name]
    return Finding(name, severity or defect.severity, evidence, defect.cause, defect.cure, defect.page)


DEFECTS = (
    Defect(
        "no-start-symbol", 1, "The start symbol is never trained", "error",
        "Target rows do not begin with a start symbol, so shifting them by one drops the first target token: "
        "it is an input, but never a label. Decoding then starts from a symbol training has not seen.",
        "Put the start symbol in front of every target before the shift: feed [bos, y1, ..., yn], "
        "predict [y1, ..., yn, eos], and start decoding from the same bos.",
    ),
    Defect(
        "wrong-tokenizer", 2, "The target is encoded with the source tokenizer", "error",
        "The function that encodes a pair calls the source side's tokenizer for the target text too.",
        "Encode the target with the target's tokenizer, and check that decoding its ids gives the text back.",
    ),
    Defect(
        "padding-mask-on-queries", 3, "The padding mask hides queries instead of keys", "error",
        "The padding mask is shaped (B, 1, T, 1): it covers whole rows. A padded query has no key left, its equal "
        "scores become equal weights, and it sees every position, the future too.",
        "Shape the padding mask (B, 1, 1, S), so that it covers columns: no query may look at a padded key.",
    ),
    Defect(
        "weak-embeddings", 4, "Token embeddings are drowned by the positions", "error",
        "The initialiser draws embedding rows as if they were a linear layer (Xavier over a large vocabulary), "
        "and nothing multiplies them by sqrt(d_model) before the positions are added.",
        "Draw rows with deviation d_model ** -0.5 and multiply them by sqrt(d_model) (section 3.4 of the paper).",
    ),
    Defect(
        "pad-row-overwritten", 4, "The initialiser overwrote the padding row", "note",
        "An initialiser that runs over all parameters also fills the row of `padding_idx`, which is never trained.",
        "After initialising, set embedding.weight[padding_idx] to zero. With padding masked everywhere it does "
        "no harm.",
    ),
    Defect(
        "target-not-shifted", 5, "The decoder is fed what it must predict", "error",
        "Decoder input and labels are the same sequence: the look-ahead mask lets a position see itself, so that "
        "copying its input is all the model learns.",
        "Shift by one: feed target[:, :-1] and predict target[:, 1:].",
    ),
    Defect(
        "tested-on-training-data", 6, "The test data stand in the training data", "error",
        "Evaluation runs over training sentences, or near copies of them stand on both sides of a random split.",
        "Score on the official test set. Else put all near copies of a sentence on the same side of the split.",
    ),
    Defect(
        "unseeded-split", 6, "The split is another one at every run", "error",
        "The split draws from a random generator nobody has seeded, so that a resumed or repeated run tests on "
        "what an earlier one trained on.",
        "Give the split a generator with a fixed seed, or write the split to files once.",
    ),
    Defect(
        "scaled-by-model-width", 7, "Scores are divided by sqrt(d_model) instead of sqrt(head width)", "error",
        "The scale is computed from the width of the model, before it is shared among the heads: scores are "
        "sqrt(heads) times too small, and attention is too even.",
        "Divide by sqrt(d_model / num_heads), the width of one query.",
    ),
    Defect(
        "unusual-scale", None, "Scores are scaled in no known way", "warning",
        "The factor before the softmax is neither 1 / sqrt(head width) nor 1.",
        "Multiply the scores by 1 / sqrt(head width) (equation 1 of the paper), once.",
    ),
    Defect(
        "shared-projections", 8, "All heads share one projection", "error",
        "The input is cut into heads first, and one small linear layer (head width by head width) projects them "
        "all: the heads cannot look for different things, and none sees the whole input.",
        "Project the whole width first, nn.Linear(d_model, d_model), and cut the result into heads.",
    ),
    Defect(
        "no-source-padding-mask", 9, "Source padding is not masked", "error",
        "An attention over the source has no mask for padded keys (in the encoder, in cross-attention, or both): a "
        "sentence's result depends on how long its neighbours in the batch are.",
        "Pass (source != pad) as key padding mask to the encoder's self-attention and to cross-attention.",
    ),
    Defect(
        "dropout-on-residual", 10, "Dropout falls on the residual stream", "error",
        "The layer computes dropout(norm(x + sublayer(x))): what is dropped is gone from the stream that carries "
        "every token to the top.",
        "Drop the sublayer's output before it is added: norm(x + dropout(sublayer(x))) (section 5.4).",
    ),
    Defect(
        "end-kept-on-cut-targets", 11, "Cut targets end with the end symbol", "error",
        "Rows are cut to the limit and the end symbol is put last, or kept: the model is taught to stop in "
        "mid-sentence.",
        "Leave pairs out that are longer than the limit, and count them; or cut them without an end symbol.",
    ),
    Defect(
        "silent-cut", 11, "Long sources are cut without a word", "warning",
        "The tokenizer or the collate function truncates sources: the rest of the sentence is never read.",
        "Leave the pair out and count it, or warn with the number of sources cut.",
    ),
    Defect(
        "mean-of-batch-means", 12, "Perplexity depends on the batching", "error",
        "The mean over batches of each batch's mean loss: tokens of small batches weigh more than others.",
        "Add up the losses of all tokens, divide by the number of tokens, then take the exponent.",
    ),
    Defect(
        "last-batch-loss", 12, "The loss reported is that of the last batch", "error",
        "The variable of the loop is reported after the loop.",
        "Add up the losses of all tokens of all batches and divide by the number of tokens.",
    ),
    Defect(
        "not-bleu", 13, "What is called BLEU is not BLEU", "error",
        "N-grams are counted over characters, sentence by sentence, or with clipping or brevity of its own.",
        "Call sacrebleu.corpus_bleu on detokenised output, and report its signature.",
    ),
    Defect(
        "errors-swallowed", 13, "Sentences that fail are left out of the score", "error",
        "A try/except around a sentence's score drops it: the worst outputs do not count.",
        "Let it fail, or score the sentence 0. sacreBLEU accepts empty outputs.",
    ),
    Defect(
        "teacher-forced-score", 13, "The score is of teacher-forced output", "error",
        "The decoder is given the reference while the output that is scored is made.",
        "Decode from the start symbol alone, feeding the model its own output.",
    ),
    Defect(
        "fixed-padding", 14, "Every batch is padded to the same length", "warning",
        "Rows are padded to a fixed length (padding=\"max_length\") instead of to the longest of their batch.",
        "Pad to the longest row of the batch, and put rows of like length together.",
    ),
    Defect(
        "schedule-without-state", 15, "The schedule cannot be saved and restored", "error",
        "The schedule keeps its step in a plain attribute and has no state_dict, or leaves the step out of it: "
        "after a resume the warm-up begins again.",
        "Give it state_dict() and load_state_dict() (torch.optim.lr_scheduler.LambdaLR has both) and save them "
        "with the model and the optimizer.",
    ),
    Defect(
        "position-limit", 16, "Positions end without warning", "warning",
        "Positions stand in a table of fixed size, and nothing says so before a longer text is looked up in it.",
        "Check the length first and say the limit in the error, and keep it as `max_length` or in the "
        "configuration; or use positions that are computed.",
    ),
    Defect(
        "mask-fill", 17, "The fill value of the mask is wrong", "error",
        "Hidden scores are filled with a number near zero (-1e-12 where -1e12 was meant) that hides nothing, or "
        "with one that half precision cannot hold (-1e9, -1e20).",
        'Fill with float("-inf") or torch.finfo(scores.dtype).min.',
    ),
    Defect(
        "mask-as-value", 18, "The mask is passed in the place of the value", "error",
        "Arguments in the wrong order: the attention averages the mask instead of the values, and what it returns "
        "holds nothing of the tokens.",
        "Pass them by name: attention(query=x, key=memory, value=memory, mask=mask).",
    ),
    Defect(
        "sees-the-future", None, "A position sees later target tokens", "error",
        "The decoder's self-attention has no look-ahead mask, or one of the wrong sense.",
        "Hide the keys above the diagonal: True above it in torch's boolean masks (True = hidden).",
    ),
    Defect(
        "rows-mixed", None, "The rows of a batch look at each other", "error",
        "The batch axis is taken for the time axis: nn.Transformer without batch_first=True expects (T, B, D).",
        "Pass batch_first=True, or transpose what goes in.",
    ),
    Defect(
        "depends-on-the-batch", None, "A result depends on its neighbours in the batch", "error",
        "Something is computed over the batch (batch normalisation, a statistic, a wrong view).",
        "Normalise over the width only, and replace view by transpose where axes change places.",
    ),
    Defect(
        "depends-on-left-padding", None, "Padding before the text changes the result", "error",
        "Positions are counted from the first column, padding or not, or padding there is not masked.",
        "Count positions from the first real token (mask.cumsum(-1) - 1), and mask padded keys.",
    ),
    Defect(
        "source-not-read", None, "The output does not depend on the source", "error",
        "Nothing of the encoder's output reaches the decoder: cross-attention is missing, fed with the wrong "
        "tensor, or every source key is masked.",
        "Pass the encoder's output as key and value of cross-attention.",
    ),
    Defect(
        "random-in-evaluation", None, "eval() does not make it deterministic", "error",
        "Dropout that ignores train/eval: functional.dropout(x, p) is always active.",
        "Use nn.Dropout, or pass training=self.training.",
    ),
    Defect(
        "not-a-number", None, "The output is not a number", "error",
        "A row of scores is masked entirely with -inf, and its softmax divides zero by zero.",
        "Let the padding mask hide keys, never queries, and give each row at least one key.",
    ),
    Defect(
        "cache-differs", None, "Step by step is not the same as all at once", "error",
        "The cache misses a position, is put in the wrong order, or positions are counted from zero at every step.",
        "Compare with teacher forcing step by step, beginning with the second.",
    ),
    Defect(
        "wrong-labels", None, "The labels are not the next tokens", "error",
        "The shift is by another number of positions, or in the wrong direction.",
        "Feed target[:, :-1] and predict target[:, 1:].",
    ),
    Defect(
        "padding-in-loss", None, "The loss counts padding", "error",
        "The loss has no ignore_index: the model learns to predict padding, and the loss looks better than it is.",
        "nn.CrossEntropyLoss(ignore_index=pad).",
    ),
    Defect(
        "end-never-trained", None, "The end symbol is never a label", "error",
        "Targets have no end symbol, or the shift or an ignore_index drops it: outputs will not end.",
        "End every target with the end symbol and keep it among the labels.",
    ),
    Defect(
        "below-the-floor", None, "The loss is lower than chance allows", "error",
        "On random targets no honest model gets below the entropy of a token: the labels leak into the input.",
        "Look for the way from label to input: the shift, the look-ahead mask, features made of the target.",
    ),
    Defect(
        "starts-otherwise", 1, "Decoding starts from another symbol than training", "error",
        "The decode function begins with another symbol (often padding) than the first decoder input of training.",
        "Begin decoding with the symbol training begins with.",
    ),
    Defect(
        "decodes-otherwise", None, "What was learned by heart is not what is decoded", "error",
        "Training and decoding differ: masks, positions, tokens dropped or repeated at the start.",
        "Compare the model's inputs of training and of the first steps of decoding.",
    ),
    Defect(
        "not-learned", None, "A few pairs could not be learned by heart", "note",
        "Too few updates, a learning rate that is too low or too high, or a model that cannot learn.",
        "Give more updates (`updates=`); with a sound model a handful of pairs is learned in some hundred.",
    ),
    Defect(
        "attention-differs", None, "Attention is not that of the paper", "error",
        "softmax(Q K^T / sqrt(E)) V with hidden keys of weight 0 gives another result.",
        "Compare with torch.nn.functional.scaled_dot_product_attention step by step.",
    ),
    Defect(
        "round-trip", None, "Decoding the ids does not give the text back", "warning",
        "The tokenizer loses characters, or its encode and decode are of different vocabularies.",
        "Train the tokenizer on this text, with byte fallback; join pieces the way it cut them.",
    ),
)  # fmt: skip

CATALOGUE = {defect.name: defect for defect in DEFECTS}
