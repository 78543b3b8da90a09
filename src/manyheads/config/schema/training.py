"""The sections of a configuration on training, and on the scores that a recipe reached."""

from typing import Annotated, Literal

from manyheads.config.schema.base import Field, Limits, Section
from manyheads.config.schema.sections import Count, Factor, Positive, Probability, Text


class StageConfig(Section):
    """A stage of a curriculum: how often the pairs of each corpus are drawn for a number of updates."""

    steps: Positive | None = Field(
        None, description="updates of the stage; only the last stage has none, because it lasts to the end"
    )
    weights: tuple[Factor, ...] = Field(
        description="number of times that the pairs of a corpus are drawn in an epoch, as in data.weights: one "
        "number for train, then one for each corpus in more"
    )


class TrainingConfig(Section):
    """Optimiser, schedule, and when to stop and save (section 5)."""

    steps: Positive = Field(8_000, description="number of optimiser updates")
    stages: tuple[StageConfig, ...] = Field(
        (),
        description="curriculum: tables [[training.stages]] in order, each with its weights of the corpora and "
        "its steps, which the last one leaves out. Default: one stage with data.weights",
    )
    epochs: Positive | None = Field(
        None,
        description="passes over the training text; replaces steps if given. "
        "On the command line, --set training.steps replaces the epochs of the file",
    )
    max_minutes: Annotated[float, Limits(gt=0, le=10_000_000)] | None = Field(
        None,
        description="minutes from the start of the command to its end, the preparation (up to half of them), "
        "validation and checkpoints included; the number of steps and the learning rate follow the speed, and "
        "validations are rarer where they would take more than a quarter of the time",
    )
    batch_tokens: Positive = Field(4_096, description="target tokens per update, end symbols counted, padding not")
    batch_sentences: Positive | None = Field(
        None, description="pairs or texts per update; replaces batch_tokens if given"
    )
    accumulation: Positive = Field(
        1,
        description="number of micro-batches of an update, computed one by one; raise it if memory runs out",
    )
    optimizer: Literal["adam", "adamw", "muon"] = Field(
        "adam",
        description="adam (section 5.3), adamw, or muon (Jordan et al. 2024): fewer, slightly longer updates",
    )
    muon_factor: Annotated[float, Limits(gt=0, le=1_000)] = Field(
        3.0,
        description="muon: rate of the matrices inside the layers, as a multiple of that of all other weights",
    )
    learning_rate: Annotated[float, Limits(gt=0, le=1_000)] = Field(
        2e-3,
        description="peak learning rate; for the schedule noam, the factor in front of its formula",
    )
    betas: tuple[Probability, Probability] = Field(
        (0.9, 0.98), description="decay rates of Adam's two moments (section 5.3)"
    )
    epsilon: Annotated[float, Limits(ge=1e-30, le=1)] = Field(
        1e-9, description="epsilon of Adam, added to the denominator (section 5.3)"
    )
    weight_decay: Annotated[float, Limits(ge=0, le=1_000)] = Field(
        0.0,
        description="weight decay, added to the gradients (adam) or subtracted from the matrices (adamw, muon)",
    )
    schedule: Literal["inverse-sqrt", "noam", "cosine", "linear", "plateau", "constant"] = Field(
        "inverse-sqrt",
        description="learning-rate schedule. noam is the formula of section 5.3; all others rise to "
        "learning_rate in warmup_steps, and then continue as their name says",
    )
    warmup_steps: Count = Field(1_000, description="number of updates in which the learning rate rises to its peak")
    plateau_patience: Positive = Field(
        10, description="plateau: validations without improvement before the learning rate is multiplied by 0.9"
    )
    label_smoothing: Probability = Field(
        0.1, description="target probability spread evenly over the vocabulary (section 5.4); 0 is off"
    )
    r_drop: Annotated[float, Limits(ge=0, le=1_000)] = Field(
        0.0,
        description="weight of R-Drop, the divergence between two passes with different dropout (alpha of Liang "
        "et al. 2021); 0 is off. An update takes about twice as long",
    )
    ema: Probability = Field(
        0.0,
        description="decay of a moving average of the weights, which becomes the model, such as 0.999; 0 is off",
    )
    clip_norm: Annotated[float, Limits(gt=0, le=1e9)] | None = Field(
        1.0, description="maximum norm of the gradient; a larger gradient is scaled down to it"
    )
    layer_decay: Annotated[float, Limits(gt=0, le=1)] = Field(
        1.0,
        description="rate of each layer over that of the layer above; 1 is off, 0.8 is usual in fine-tuning",
    )
    lora_rank: Annotated[int, Limits(ge=0, le=65_536)] = Field(
        0,
        description="fine-tuning by LoRA (Hu et al. 2022): rank k of the product of two matrices that is learnt "
        "for each matrix of the layers, and multiplied by 16 / k; all other weights but the head of the task are "
        "frozen. 0 is off. Usual learning rates: 1e-4 to 1e-3",
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto",
        description="number format of the computation; auto takes bf16 where the processor is faster with it, "
        "else fp32",
    )
    device: Text = Field("auto", description='"cpu", "cuda" or "cuda:1"; auto takes a GPU if there is one')
    seed: Annotated[int, Limits(ge=0, lt=2**63)] = Field(
        1, description="seed of the initial weights, the order of the text, dropout and subword sampling"
    )
    save_every: Positive = Field(500, description="updates between checkpoints; each is also validated")
    log_every: Positive = Field(10, description="updates between lines of metrics.jsonl")
    average_checkpoints: Positive = Field(
        1, description="number of last checkpoints whose mean becomes the model if it validates better; 1 is off"
    )
    metric: Literal["loss", "bleu", "chrf", "accuracy", "macro_f1"] = Field(
        "loss",
        description="score that the best checkpoint is chosen by: loss; for translation also bleu and chrf; for "
        "classification also accuracy and macro_f1",
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="classification: balanced weighs each class by the inverse of its share of the examples"
    )
    shard: bool = Field(
        False,
        description="shard weights, gradients and optimiser state over the processes (FSDP), for models larger "
        "than one GPU",
    )
    patience: Positive | None = Field(
        None,
        description="validations without improvement before training stops",
    )
    tensorboard: bool = Field(False, description="also write TensorBoard files (extra tensorboard)")
    valid_sentences: Count = Field(
        500, description="validation pairs translated for BLEU and chrF at each validation; 0 is none"
    )

    def check_stages(self) -> None:
        """Refuse stages without a fixed number of updates, and a stage that would never begin."""
        if not self.stages:
            return
        if self.epochs is not None or self.max_minutes is not None:
            name = "epochs" if self.epochs is not None else "max_minutes"
            raise ValueError(
                f"training.stages are counted in updates, but training.{name} = {vars(self)[name]} decides how "
                f'many there are. Use {name} = "none" and training.steps.'
            )
        *earlier, last = [stage.steps for stage in self.stages]
        if None in earlier or last is not None:
            raise ValueError(
                "training.stages: every stage but the last needs steps, and the last has none, because it lasts to "
                "the end (training.steps)."
            )
        begin = sum(steps for steps in earlier if steps is not None)
        if begin >= self.steps:
            raise ValueError(
                f"training.stages: the last stage would begin after update {begin}, but training.steps = "
                f"{self.steps}. Use more steps, or shorter stages."
            )

    def check_whole_matrices(self) -> None:
        """Refuse combinations of Muon, LoRA and sharding, which cannot share the same weight matrices."""
        if self.shard and self.optimizer == "muon":
            raise ValueError(
                'training.shard = true spreads matrices that training.optimizer = "muon" needs whole. '
                'Use optimizer = "adamw".'
            )
        if self.lora_rank and (self.shard or self.optimizer == "muon"):
            setting = "shard = true" if self.shard else 'optimizer = "muon"'
            raise ValueError(
                f"training.lora_rank = {self.lora_rank} steps along two thin factors of each matrix, which "
                f'training.{setting} cannot. Use optimizer = "adamw" and shard = false.'
            )
