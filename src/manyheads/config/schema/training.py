"""The sections of a configuration on training, and on the scores that a recipe reached."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manyheads.config.schema.sections import Positive, Probability, Section

__all__ = ["MeasuredConfig", "TrainingConfig"]


class TrainingConfig(Section):
    """Optimiser, schedule, and when to stop and save (section 5)."""

    steps: Positive = Field(8_000, description="optimiser updates")
    epochs: Positive | None = Field(None, description="passes over the corpus; given, it replaces steps")
    max_minutes: float | None = Field(
        None,
        gt=0,
        description="time from the first update to the end, validation and checkpoints included; the number of "
        "steps is fixed from the speed measured at the start",
    )
    batch_tokens: Positive = Field(4_096, description="target tokens an update, end marks counted, padding not")
    batch_sentences: Positive | None = Field(None, description="pairs an update; given, it replaces batch_tokens")
    accumulation: Positive = Field(
        1, description="parts an update is computed in, one after the other, to save memory"
    )
    optimizer: Literal["adam", "adamw", "muon"] = Field(
        "adam", description="section 5.3: adam; muon (Jordan et al. 2024) needs fewer updates, each a little longer"
    )
    muon_factor: float = Field(
        3.0, gt=0, description="muon: learning rate of the matrices inside the layers over that of the rest"
    )
    learning_rate: float = Field(2e-3, gt=0, description="peak; for noam the factor in front of the formula")
    betas: tuple[Probability, Probability] = Field((0.9, 0.98), description="section 5.3")
    epsilon: float = Field(1e-9, gt=0, description="section 5.3")
    weight_decay: float = Field(
        0.0, ge=0, description="added to gradients (adam), or taken off matrices (adamw, muon)"
    )
    schedule: Literal["inverse-sqrt", "noam", "cosine", "linear", "plateau", "constant"] = Field(
        "inverse-sqrt",
        description="noam is the formula of section 5.3; the others rise to learning_rate, then fall",
    )
    warmup_steps: Annotated[int, Field(ge=0)] = Field(1_000, description="updates of rising rate")
    plateau_factor: float = Field(0.9, gt=0, lt=1, description="what the rate is multiplied by (plateau)")
    plateau_patience: Positive = Field(10, description="validations without improvement before that (plateau)")
    label_smoothing: Probability = Field(0.1, description="section 5.4")
    r_drop: float = Field(
        0.0,
        ge=0,
        description="weight of the divergence between two passes with other dropout (R-Drop: Liang et al. 2021, "
        "whose alpha it is); an update takes about twice as long",
    )
    ema: Probability = Field(
        0.0, description="decay of an exponential moving average of the weights, which translates then; 0 is off"
    )
    clip_norm: float | None = Field(1.0, gt=0, description="largest gradient norm")
    layer_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="each layer learns at so much of the rate of the one above it, embeddings the slowest; 0.8 is "
        "usual where a pre-trained model is fine-tuned",
    )
    frozen_layers: Annotated[int, Field(ge=0)] | None = Field(
        None, description="the embeddings, and that many layers from the first, stay as they are; faster, too"
    )
    unfreeze_every: Positive | None = Field(
        None,
        description="updates after which one more layer learns, from the last to the first (Howard and Ruder 2018)",
    )
    lora_rank: Annotated[int, Field(ge=0)] = Field(
        0,
        description="each matrix of the layers moves by a product of two of that rank, and all but the task's head "
        "stays else as it is (LoRA: Hu et al. 2022); 0 trains all. Rates of 1e-4 to 1e-3 suit it",
    )
    lora_alpha: float = Field(16.0, gt=0, description="that product counts lora_alpha / lora_rank times")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="auto: bf16 where the processor is faster with it"
    )
    device: str = Field("auto", description='"cpu", "cuda", "cuda:1"; auto takes a GPU when there is one')
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of initial weights, order, dropout, subword sampling")
    save_every: Positive = Field(500, description="updates between checkpoints; each also validates")
    log_every: Positive = Field(10, description="updates between lines of metrics.jsonl")
    keep_checkpoints: Positive = Field(2, description="how many of the last checkpoints stay, beside the best")
    average_checkpoints: Positive = Field(
        1, description="weights of that many last checkpoints averaged at the end, and kept if they validate better"
    )
    metric: Literal["loss", "bleu", "chrf", "accuracy", "macro_f1"] = Field(
        "loss",
        description="what the best checkpoint is chosen by: loss; of translations also bleu, chrf; of classes also "
        "accuracy, macro_f1",
    )
    masked: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.15, description="masked-lm: share of the tokens that are hidden (Devlin et al. 2019, section 3.1)"
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="classification: balanced weighs each class by one over its share of the examples"
    )
    divergence: Literal["warn", "rollback"] = Field(
        "warn",
        description="when the loss is far above its running mean: warn, or go back to the last checkpoint at half "
        "the rate",
    )
    compile: bool = Field(
        False,
        description="compile the layers (torch.compile), and pad text to a few lengths for it; meant for GPUs. The "
        "first updates take long, and a CPU needs a C++ compiler",
    )
    shard: bool = Field(
        False,
        description="spread weights, gradients and moments over the processes (FSDP), for models larger than a GPU",
    )
    workers: Annotated[int, Field(ge=0)] = Field(
        1, description="threads that make batches ahead; 0 makes each when it is due. The result is the same"
    )
    patience: Positive | None = Field(
        None,
        description="validations without improvement before training stops, counted from where all layers learn",
    )
    tensorboard: bool = Field(False, description="also write TensorBoard's files (extra tensorboard)")
    valid_sentences: Annotated[int, Field(ge=0)] = Field(
        500, description="validation pairs decoded for BLEU and chrF at each save; 0 is none"
    )

    @model_validator(mode="after")
    def check_whole_matrices(self) -> Self:
        """Refuse combinations of Muon, LoRA and sharding: each needs whole matrices to itself."""
        if self.shard and self.optimizer == "muon":
            raise ValueError(
                'training.shard = true spreads matrices that training.optimizer = "muon" needs whole. '
                'Use optimizer = "adamw".'
            )
        if self.lora_rank and (self.shard or self.optimizer == "muon"):
            other = "shard = true" if self.shard else 'optimizer = "muon"'
            raise ValueError(
                f"training.lora_rank = {self.lora_rank} steps along two thin factors of each matrix, which "
                f'training.{other} cannot. Use optimizer = "adamw" and shard = false.'
            )
        return self


NAMES = {"bleu": "BLEU", "chrf": "chrF"}


class MeasuredConfig(Section):
    """Test scores by number of updates, written by benchmarks/quality.py; they tell what limited time will give."""

    metric: Literal["bleu", "chrf"] = Field("bleu", description="score of data.test, searched as in [search]")
    signature: str = Field("", description="sacreBLEU signature of the scores")
    seeds: Positive = Field(1, description="trainings whose mean each score is")
    pairs: Annotated[int, Field(ge=0)] = Field(0, description="training pairs, after filtering")
    settings: str = Field(
        "",
        description="fingerprint of the settings that the scores depend on; once one of them is changed, nothing "
        "is expected from the scores any more",
    )
    updates: tuple[Positive, ...] = Field(
        (), description="updates of each training, rising; the last is the recipe's own result"
    )
    scores: tuple[Annotated[float, Field(ge=0.0, le=100.0)], ...] = Field(
        (), description="score after each number of updates, never falling"
    )
    processors: tuple[str, ...] = Field((), description="class of processor that each score was measured on")

    @model_validator(mode="after")
    def check_points(self) -> Self:
        """Refuse a table with rows of unequal length or values out of order."""
        if not len(self.updates) == len(self.scores) == len(self.processors):
            raise ValueError(
                f"measured.updates holds {len(self.updates)} values, measured.scores {len(self.scores)} and "
                f"measured.processors {len(self.processors)}. Give one score and one processor for each."
            )
        if any(one >= other for one, other in pairwise(self.updates)):
            raise ValueError(f"measured.updates = {list(self.updates)} must rise from each value to the next.")
        if any(one > other for one, other in pairwise(self.scores)):
            raise ValueError(f"measured.scores = {list(self.scores)} must not fall; leave out the point that does.")
        return self

    @property
    def name(self) -> str:
        """Name of the metric as papers write it."""
        return NAMES[self.metric]

    def score_after(self, updates: int) -> float | None:
        """Return the score to expect, linear in the logarithm of the updates; None outside of the table."""
        after = bisect_right(self.updates, updates)
        if after == 0 or (after == len(self.updates) and updates > self.updates[-1]):
            return None
        if updates == self.updates[after - 1]:
            return self.scores[after - 1]
        low, high = math.log(self.updates[after - 1]), math.log(self.updates[after])
        share = (math.log(updates) - low) / (high - low)
        return self.scores[after - 1] + share * (self.scores[after] - self.scores[after - 1])

    def summary(self) -> str:
        """Return all scores in one line, the processor named where it changes; empty without scores."""
        points, last = [], ""
        for updates, score, processor in zip(self.updates, self.scores, self.processors, strict=True):
            points.append(f"{score:.1f} after {updates:,}")
            if last and processor != last:
                points[-2] += f" ({last})"
            last = processor
        return f"{self.name} {', '.join(points)} updates ({last})" if points else ""
