"""Train Hugging Face MarianMT with Seq2SeqTrainer, which groups sentences by length and pads.

Its batch size is a number of sentences: as many as have the batch tokens of the other contenders on average.
Needs: pip install transformers accelerate.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments

from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import EOS, PAD
from peers.corpus import FOREVER, open_prepared
from peers.marian import marian
from peers.measured_updates import MeasuredUpdates

IGNORED = -100  # label that the losses of transformers ignore


class MeasuredTrainer(Seq2SeqTrainer):
    """A Seq2SeqTrainer that pauses between rounds."""

    measured: MeasuredUpdates

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:
        """Compute one update when its round has begun."""
        self.measured.before_update(int((inputs["labels"] != IGNORED).sum()))
        return super().training_step(model, inputs, *args, **kwargs)


class Collator:
    """Pad pairs of ids and shift the labels, as DataCollatorForSeq2Seq does."""

    def __init__(self, model: MarianMTModel) -> None:
        self.model = model

    def __call__(self, pairs: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        source = pad_rows([pair["input_ids"] for pair in pairs], PAD)
        labels = pad_rows([pair["labels"] for pair in pairs], IGNORED)
        shifted = self.model.prepare_decoder_input_ids_from_labels(labels=labels)
        mask = (source != PAD).long()
        return {"input_ids": source, "attention_mask": mask, "labels": labels, "decoder_input_ids": shifted}


def main() -> None:
    folder, precision = sys.argv[1:]
    measured = MeasuredUpdates()
    prepared = open_prepared(Path(folder))
    training, store = prepared.config.training, prepared.task.store
    pairs = [
        {"input_ids": [*store.source[row].tolist(), EOS], "labels": [*store.target[row].tolist(), EOS]}
        for row in range(len(store))
    ]
    mean_length = sum(len(pair["labels"]) for pair in pairs) / len(pairs)
    torch.manual_seed(training.seed)
    model = marian(prepared.config.model, prepared.size)
    trainer = MeasuredTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=f"{folder}/marian-trainer-{precision}",
            per_device_train_batch_size=round(training.batch_tokens / mean_length),
            train_sampling_strategy="group_by_length",
            max_steps=FOREVER,
            learning_rate=training.learning_rate,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=training.warmup_steps,
            adam_beta2=training.betas[1],
            adam_epsilon=training.epsilon,
            max_grad_norm=1.0,
            label_smoothing_factor=training.label_smoothing,
            bf16=precision == "bf16",
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=pairs,
        data_collator=Collator(model),
    )
    trainer.measured = measured
    trainer.train()


if __name__ == "__main__":
    main()
