"""BERT, DistilBERT, RoBERTa and GPT-2 folders of Hugging Face's transformers, in and out, without transformers."""

from manyheads.interop.huggingface.assembled import Assembled, assemble, assemble_for, empty_model, task_of
from manyheads.interop.huggingface.check import check_pretrained
from manyheads.interop.huggingface.pretrained import HuggingFaceModel
from manyheads.interop.huggingface.reader import is_pretrained, read_pretrained
from manyheads.interop.huggingface.writer import write_pretrained

__all__ = [
    "Assembled",
    "HuggingFaceModel",
    "assemble",
    "assemble_for",
    "check_pretrained",
    "empty_model",
    "is_pretrained",
    "read_pretrained",
    "task_of",
    "write_pretrained",
]
