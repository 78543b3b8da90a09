"""BERT, DistilBERT, RoBERTa and GPT-2 folders of Hugging Face's transformers, in and out, without transformers."""

from manyheads.interop.huggingface.check import check_pretrained
from manyheads.interop.huggingface.pretrained import Pretrained
from manyheads.interop.huggingface.reader import is_pretrained, read_pretrained
from manyheads.interop.huggingface.writer import write_pretrained

__all__ = ["Pretrained", "check_pretrained", "is_pretrained", "read_pretrained", "write_pretrained"]
