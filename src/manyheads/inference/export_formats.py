"""The formats of exports: which models each holds, and with which number formats of the matrices."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.config.schema import TASKS
from manyheads.config.schema.tasks import Architecture
from manyheads.errors import UsageError

QUANTIZATIONS = ("float32", "int8", "int8_float32", "int8_bfloat16", "int8_float16", "bfloat16", "float16", "int16")
_ENCODERS: tuple[Architecture, ...] = ("classifier", "masked-encoder")


@dataclass(frozen=True)
class ExportFormat:
    """Properties of an export format, known without an import of its code.

    Attributes:
        architectures: the models that it holds.
        numbers: its number formats of matrices, the default first.
        suffix: end of the name of an export that is one file; "" for a folder.
        for_browsers: whether an export computes in browsers and Node.js.
    """

    architectures: tuple[Architecture, ...]
    numbers: tuple[str, ...] = ("float32",)
    suffix: str = ""
    for_browsers: bool = False


_PAGE: tuple[Architecture, ...] = ("encoder-decoder", "classifier", "decoder")
FORMATS = {
    "ctranslate2": ExportFormat(("encoder-decoder",), QUANTIZATIONS),
    "argos": ExportFormat(("encoder-decoder",), ("int8", *QUANTIZATIONS), ".argosmodel"),
    "huggingface": ExportFormat(("encoder-decoder", "decoder", *_ENCODERS)),
    "sentence-transformers": ExportFormat(("classifier",)),
    "html": ExportFormat(_PAGE, ("int8", "float32"), ".html", for_browsers=True),
    "javascript": ExportFormat(_PAGE, ("int8", "float32"), for_browsers=True),
}


def check_format(task: str, to: str, quantization: str | None, run: str) -> str:
    """Return the number format of the matrices of an export.

    Raises:
        UsageError: there is no such format, or it does not support this task or number format.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to} is none of {', '.join(FORMATS)}.")
    chosen, architecture = FORMATS[to], TASKS[task].architecture
    if architecture not in chosen.architectures:
        able = " or ".join(name for name, other in FORMATS.items() if architecture in other.architectures)
        raise UsageError(f'--to {to} is not for runs of task = "{task}", such as {run}. Use --to {able}.')
    numbers = quantization or chosen.numbers[0]
    if numbers in chosen.numbers:
        return numbers
    if chosen.for_browsers:
        raise UsageError(f"--quantization {numbers} does not go with --to {to}. Use float32 or int8.")
    if numbers not in QUANTIZATIONS:
        raise UsageError(f"--quantization {numbers} is none of {', '.join(QUANTIZATIONS)}.")
    raise UsageError(f"--quantization {numbers} goes with --to ctranslate2, argos, html and javascript alone.")
