"""Train on a few pairs and decode them: memorization, the start of decoding, and scoring.

Pairs that were memorized are decoded; the tracer shows the symbol that decoding starts from, and whether the
decoder is fed the reference while its output is scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.step_tracer import StepTracer
from transformer_doctor.checks.training import (
    LENGTHS,
    Collate,
    Rows,
    TrainedBatch,
    TrainStep,
    Vocabulary,
    arguments,
    start_of,
)
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.progress import Advance
from transformer_doctor.report import Finding

# Nats a token below which pairs count as memorized: none of their 22 tokens can then have a probability below
# e^-0.66, about a half, so each is the most likely one.
_MEMORIZED_NATS = 0.03
_MEMORIZED_TOKEN_NATS = 0.66  # nats of each single token, likewise
_IN_A_ROW = 5  # updates whose loss must be below it
_GROWN_FACTOR = 1.05  # factor of the first loss above which a loss has grown
_PROMPT = 2  # tokens of a target that a language model continues


@dataclass(frozen=True)
class TrainingFunctions:
    """Functions of a project that train, decode and score, as `examine` describes them."""

    train_step: TrainStep
    collate: Collate
    greedy: Callable[[Any], Any] | None
    score: Callable[..., Any] | None
    updates: int


def as_number(loss: Any) -> float | None:
    """Return a loss as a float, None if the step returns no number."""
    if isinstance(loss, Tensor):
        return float(loss.detach()) if loss.numel() == 1 else None
    return float(loss) if isinstance(loss, (int, float)) else None


@dataclass(frozen=True)
class Memorized:
    """Pairs that a model was trained on, the batch that they make, and the loss of each update.

    `known` tells whether each token is by far the likeliest one, though the loss is not low yet, or smoothed.
    """

    sources: Rows
    targets: Rows
    batch: Sequence[Any]
    losses: Sequence[float]
    known: bool = False

    def learned(self, least: float) -> bool:
        """Return whether each token is the most likely one, as where losses are near the least that is possible."""
        last = self.losses[-_IN_A_ROW:]
        return self.known or (len(last) == _IN_A_ROW and max(last) < least + _MEMORIZED_NATS)


def memorize(functions: TrainingFunctions, vocabulary: Vocabulary, least: float, advance: Advance) -> Memorized:
    """Train on a few pairs, without dropout, until the loss is near the least that is possible."""
    sources, targets = vocabulary.pairs(LENGTHS)
    losses: list[float] = []
    memorized = Memorized(sources, targets, arguments(functions.collate(sources, targets)), losses)
    with WithoutDropout():
        while len(losses) < functions.updates and not memorized.learned(least):
            loss = as_number(functions.train_step(*memorized.batch))
            losses.append(math.inf if loss is None else loss)
            advance(1)
    return memorized


def all_known(batch: TrainedBatch | None) -> bool:
    """Return whether all labels of a traced step could be read, and are likelier than all other tokens together."""
    return batch is not None and float(batch.nats.max()) < _MEMORIZED_TOKEN_NATS


def least_loss(adapter: ModelAdapter, batch: TrainedBatch | None) -> float:
    """Return the least mean loss of the pairs, in nats a token, when they are known by heart.

    A language model cannot know which of the rows begins behind a start symbol.
    """
    if batch is None or adapter.kind != "decoder":
        return 0.0
    guessed = sum(row[0] in adapter.marks for row in batch.inputs.tolist())
    return guessed * math.log(max(guessed, 1)) / max(int(batch.trained.sum()), 1)


def memorization_findings(
    memorized: Memorized,
    decoded: Sequence[Sequence[int]],
    adapter: ModelAdapter,
    least: float,
    starts: Sequence[int],
    first_loss: float | None,
) -> Iterator[Finding]:
    """Compare decoded rows with the pairs that were memorized (invariant F).

    `first_loss` is the loss of the first training step, on targets of the same lengths.
    """
    losses, targets = memorized.losses, memorized.targets
    if not memorized.learned(least):
        last = losses[-1] if losses else 0
        evidence = f"after {len(losses)} updates on {len(targets)} pairs the loss is {last:.2f}"
        end = sum(losses[-_IN_A_ROW:]) / _IN_A_ROW if len(losses) >= _IN_A_ROW else 0.0
        before = min([losses[0], *([] if first_loss is None else [first_loss])]) if losses else 0.0
        grows = not end <= before * _GROWN_FACTOR + _MEMORIZED_NATS and before > 0 and end != math.inf
        severity = "warning" if grows else "note"
        yield model_finding(
            "not-learned", f"{evidence}; it was {before:.2f} at first" if grows else evidence, severity
        )
        return
    rows = [_plain_row(row, adapter, starts) for row in decoded]
    rows += [[]] * (len(targets) - len(rows))
    prompts = {0, _PROMPT if adapter.kind == "decoder" else 0}  # a continuation may include its prompt or not
    wrong = [
        index
        for index, target in enumerate(targets)
        if rows[index] not in [list(target[prompt:]) for prompt in prompts]
    ]
    if wrong:
        first = sum(rows[index][:1] != list(targets[index][:1]) for index in wrong)
        evidence = f"{len(targets)} pairs are memorised (loss {losses[-1]:.2g}), and {len(wrong)} of them are"
        yield model_finding("decodes-otherwise", f"{evidence} decoded differently, {first} from the first token on")


def prompt_of(adapter: ModelAdapter, batch: Sequence[Any], targets: Rows) -> Any:
    """Return the first part of a batch; for a language model its beginning up to the first tokens of the targets.

    Raises:
        ValueError: the batch cannot be cut.
    """
    first = batch[0]
    if isinstance(first, Mapping):  # of a model of Hugging Face
        if adapter.kind != "decoder":
            entries: dict[str, Any] = {name: value for name, value in first.items() if name != "labels"}
            return type(first)(entries)  # type: ignore[call-arg]
        first = first["input_ids"]
    if adapter.kind != "decoder":
        return first
    ids = first
    starts = [list(row).index(target[0]) for row, target in zip(rows_of(ids), targets, strict=True)]
    if not isinstance(ids, Tensor) or ids.dim() != 2 or len(set(starts)) != 1:
        raise ValueError("the rows of the batch do not begin with their targets")
    return ids[:, : starts[0] + _PROMPT]


class WithoutDropout(TorchFunctionMode):
    """Mode without dropout, so that training computes what decoding computes."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "dropout":
            return args[0] if args else kwargs["input"]
        if name == "multi_head_attention_forward":
            kwargs["training"] = False
        if name == "scaled_dot_product_attention" and len(args) < 5:
            kwargs["dropout_p"] = 0.0
        return func(*args, **kwargs)


def decoder_ids(tracer: StepTracer, table: int, sources: Rows) -> list[Tensor]:
    """Return the ids that a decoder was fed, in order: lookups in its embedding matrix without a source in them."""
    fed = [lookup.ids.cpu() for lookup in tracer.fed if lookup.table == table and lookup.ids.dim() == 2]
    return [ids for ids in fed if not _holds_any(ids, [source[:2] for source in sources])]


def _holds_any(ids: Tensor, parts: Rows) -> bool:
    """Return whether a row of ids, batch first or time first, holds one of the parts, in either direction."""
    rows = [row for matrix in (ids, ids.t()) for row in matrix.tolist()]
    return any(start_of(row, part, reverse=True) >= 0 for row in rows for part in parts)


def start_findings(trained_batch: TrainedBatch, fed: Sequence[Tensor]) -> Iterator[Finding]:
    """Yield a finding if decoding starts from another symbol than training."""
    trained = set(trained_batch.inputs[:, 0].tolist())
    if not fed or len(trained) != 1:
        return
    begun = set(fed[0].flatten()[:1].tolist())
    if begun != trained:
        evidence = f"training begins with token {trained.pop()}, decoding with token {begun.pop()}"
        yield model_finding("starts-otherwise", evidence)


def scoring_findings(targets: Rows, fed: Sequence[Tensor]) -> Iterator[Finding]:
    """Yield a finding if the decoder is fed references while outputs are scored, and never its own output."""
    taught = [sum(_holds_any(ids, [target[:3]]) for target in targets) for ids in fed]
    free = any(ids.numel() // max(len(ids), 1) > 2 and not count for ids, count in zip(fed, taught, strict=True))
    if any(taught) and not free:
        evidence = f"the decoder is fed the tokens of {max(taught)} of {len(targets)} references"
        yield model_finding("teacher-forced-score", f"{evidence} while they are scored")


def mode_findings(name: str, active: Mapping[bool, int]) -> Iterator[Finding]:
    """Yield a finding if a function leaves dropout active.

    Args:
        name: name of the function.
        active: number of active dropouts by the mode before the call, True being that of training.
    """
    if active[False]:
        evidence = f"{name} makes {active[False]} dropouts active, though the model was in eval() before"
        yield model_finding("evaluates-in-training-mode", evidence)
    elif active[True]:
        evidence = f"in {name}, called after train_step, {active[True]} dropouts are active"
        yield model_finding("evaluates-in-training-mode", evidence)


def rows_of(decoded: Any) -> list[list[int]]:
    """Return the output of a decode function as rows of ids."""
    return decoded.tolist() if isinstance(decoded, Tensor) else [list(map(int, row)) for row in decoded]


def _plain_row(row: Sequence[int], adapter: ModelAdapter, starts: Sequence[int]) -> list[int]:
    """Return a row of ids up to its end mark, without padding and the marks before its first token.

    The marks before it are those before the targets in training, the end mark perhaps, and other marks.
    """
    row = list(row)
    while row and row[0] in (*adapter.marks, *starts):
        row = row[1:]
    if adapter.eos in row:
        row = row[: row.index(adapter.eos)]
    return [token for token in row if token != adapter.pad]
