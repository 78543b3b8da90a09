"""Training objectives: a model with the loss of its task, summed over all predictions of a batch, in nats."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from manyheads.data.batch import Batch
from manyheads.data.examples import NO_LABEL, Examples
from manyheads.data.masked import MaskedTexts
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.r_drop import kl_divergence_sum

__all__ = [
    "ClassificationObjective",
    "MaskedObjective",
    "Objective",
    "TranslationObjective",
    "masked_loss",
    "translation_loss",
]


class Objective(nn.Module):
    """A model with its loss as one module, which DDP or FSDP can wrap."""

    model: Transformer

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Compute the losses of a micro-batch (`MicroBatch`), summed over its predictions.

        Returns:
            The training loss, and the plain negative log-likelihood in nats; float32 ().
        """
        raise NotImplementedError


def translation_loss(model: EncoderDecoder, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return smoothed loss and plain negative log-likelihood, summed over the real target tokens, in nats."""
    hidden, right = hidden_states(model, batch)
    return cross_entropy_sums(hidden, model.output.weight, model.output.bias, right, smoothing)


def hidden_states(model: EncoderDecoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return last hidden states (N, D) and correct tokens (N,) of the N real target positions, row by row."""
    hidden = model.decode(batch.target_in, *model.encode(batch.source))
    positions = batch.target_places
    return hidden.flatten(0, 1).index_select(0, positions), batch.target_out.flatten().index_select(0, positions)


class TranslationObjective(Objective):
    """A translation model with its loss: cross-entropy with label smoothing, optionally with R-Drop."""

    model: EncoderDecoder

    def __init__(self, model: EncoderDecoder, smoothing: float, r_drop: float) -> None:
        """Set up the loss; `r_drop` is alpha of Liang et al. (2021), equation 4, and 0 turns R-Drop off."""
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Compute the losses of a batch."""
        if self.r_drop == 0:
            return translation_loss(self.model, batch, self.smoothing)
        return self.twice(batch)

    def twice(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Compute R-Drop: the mean loss of two passes with different dropout, plus their divergence."""
        hidden, right = hidden_states(self.model, batch.twice())
        output = self.model.output
        loss, nll = cross_entropy_sums(hidden, output.weight, output.bias, right, self.smoothing)
        first, second = hidden.chunk(2)
        apart = kl_divergence_sum(first, second, output.weight, output.bias)
        return (loss + self.r_drop * apart) / 2, nll / 2


class ClassificationObjective(Objective):
    """A classifier with its loss: cross-entropy with label smoothing and a weight for each class."""

    model: TextClassifier

    def __init__(self, model: TextClassifier, smoothing: float, class_weights: Tensor | None) -> None:
        """Set up the loss; `class_weights` are (C,) float32, and None gives every class the same weight."""
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.class_weights = class_weights

    def forward(self, batch: Examples) -> tuple[Tensor, Tensor]:
        """Compute the losses of a batch; class weights do not enter the plain negative log-likelihood."""
        logits = self.model(batch.ids, batch.types).float()
        weights = None if self.class_weights is None else self.class_weights.to(logits.device)
        loss = functional.cross_entropy(
            logits,
            batch.labels,
            weights,
            ignore_index=NO_LABEL,
            reduction="sum",
            label_smoothing=self.smoothing,
        )
        plain = functional.cross_entropy(logits.detach(), batch.labels, ignore_index=NO_LABEL, reduction="sum")
        return loss, plain


def masked_loss(model: MaskedLanguageModel, batch: MaskedTexts, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return smoothed loss and plain negative log-likelihood, summed over the masked tokens, in nats."""
    hidden = model.encode(batch.ids)[0].flatten(0, 1).index_select(0, batch.hidden)
    output = model.output
    return cross_entropy_sums(model.transform_states(hidden), output.weight, output.bias, batch.right, smoothing)


class MaskedObjective(Objective):
    """A masked language model with its loss: cross-entropy of the masked tokens, with label smoothing."""

    model: MaskedLanguageModel

    def __init__(self, model: MaskedLanguageModel, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: MaskedTexts) -> tuple[Tensor, Tensor]:
        """Compute the losses of a batch."""
        return masked_loss(self.model, batch, self.smoothing)
