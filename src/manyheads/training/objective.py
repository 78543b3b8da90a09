"""What training descends: the loss of a part of an update, summed over all that is predicted, in nats."""

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
    """A model together with its loss, as one module: what several processes share, and what is compiled."""

    model: Transformer

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Of a part of an update (`Part`), summed over what it predicts, float32 ().

        Returns:
            The loss to descend, and the plain negative log-likelihood in nats.
        """
        raise NotImplementedError


def translation_loss(model: EncoderDecoder, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Smoothed loss and plain negative log-likelihood, summed over the real target tokens, in nats."""
    hidden, right = hidden_states(model, batch)
    return cross_entropy_sums(hidden, model.output.weight, model.output.bias, right, smoothing)


def hidden_states(model: EncoderDecoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Last hidden states (N, D) of the N real target positions, row by row, and the right token of each (N,)."""
    hidden = model.decode(batch.target_in, *model.encode(batch.source))
    places = batch.target_places
    return hidden.flatten(0, 1).index_select(0, places), batch.target_out.flatten().index_select(0, places)


class TranslationObjective(Objective):
    """A translator with its loss: cross-entropy with label smoothing, and R-Drop on request."""

    model: EncoderDecoder

    def __init__(self, model: EncoderDecoder, smoothing: float, r_drop: float) -> None:
        """R-Drop's weight is the alpha of Liang et al. (2021), equation 4; 0 leaves it out."""
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `Objective`."""
        if self.r_drop == 0:
            return translation_loss(self.model, batch, self.smoothing)
        return self.twice(batch)

    def twice(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Two passes with other dropout: the mean of their losses, and how far their predictions lie apart."""
        hidden, right = hidden_states(self.model, batch.twice())
        output = self.model.output
        loss, nll = cross_entropy_sums(hidden, output.weight, output.bias, right, self.smoothing)
        first, second = hidden.chunk(2)
        apart = kl_divergence_sum(first, second, output.weight, output.bias)
        return (loss + self.r_drop * apart) / 2, nll / 2


class ClassificationObjective(Objective):
    """A classifier with its loss: cross-entropy of the label, smoothed, each class with a weight of its own."""

    model: TextClassifier

    def __init__(self, model: TextClassifier, smoothing: float, class_weights: Tensor | None) -> None:
        """Weights are (C,), float32; None weighs all classes alike."""
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.class_weights = class_weights

    def forward(self, batch: Examples) -> tuple[Tensor, Tensor]:
        """See `Objective`. The plain negative log-likelihood knows no weights."""
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
    """Smoothed loss and plain negative log-likelihood, summed over the hidden tokens, in nats."""
    hidden = model.encode(batch.ids)[0].flatten(0, 1).index_select(0, batch.hidden)
    output = model.output
    return cross_entropy_sums(model.guesses(hidden), output.weight, output.bias, batch.right, smoothing)


class MaskedObjective(Objective):
    """An encoder with the loss of the tokens that were hidden from it."""

    model: MaskedLanguageModel

    def __init__(self, model: MaskedLanguageModel, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: MaskedTexts) -> tuple[Tensor, Tensor]:
        """See `Objective`."""
        return masked_loss(self.model, batch, self.smoothing)
