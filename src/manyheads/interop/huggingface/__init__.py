"""BERT, DistilBERT, RoBERTa and GPT-2 folders of Hugging Face's transformers, in and out, without transformers."""

from manyheads.interop.huggingface.check import check_pretrained
from manyheads.interop.huggingface.reader import HuggingFaceModel, is_pretrained, read_pretrained
from manyheads.interop.huggingface.task_model import (
    TaskModel,
    build_task_model,
    empty_model,
    load_task_model,
    task_of,
)
from manyheads.interop.huggingface.writer import write_pretrained

__all__ = [
    "HuggingFaceModel",
    "TaskModel",
    "build_task_model",
    "check_pretrained",
    "empty_model",
    "is_pretrained",
    "load_task_model",
    "read_pretrained",
    "task_of",
    "write_pretrained",
]
