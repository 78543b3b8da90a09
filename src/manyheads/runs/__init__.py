"""Opens files and wires a task: what the verbs of the command line call."""

from manyheads.data.report import DataReport
from manyheads.runs.average import average
from manyheads.runs.bench.decoding import DecodingSpeed, bench_decode
from manyheads.runs.bench.training import TrainingSpeed, bench_train
from manyheads.runs.bring import Import, bring
from manyheads.runs.curves import curves
from manyheads.runs.demo import demo
from manyheads.runs.export import Export, export
from manyheads.runs.inspect import inspect
from manyheads.runs.page import stand_alone
from manyheads.runs.push import push
from manyheads.runs.report import data_report
from manyheads.runs.scoring.classes import ClassEvaluation
from manyheads.runs.scoring.compare import Comparison, compare
from manyheads.runs.scoring.evaluate import Evaluation, evaluate
from manyheads.runs.scoring.masked import MaskedEvaluation
from manyheads.runs.scoring.perplexity import TextEvaluation
from manyheads.runs.suggest import Suggestion, suggest
from manyheads.runs.train import TrainingSummary, train

__all__ = [
    "ClassEvaluation",
    "Comparison",
    "DataReport",
    "DecodingSpeed",
    "Evaluation",
    "Export",
    "Import",
    "MaskedEvaluation",
    "Suggestion",
    "TextEvaluation",
    "TrainingSpeed",
    "TrainingSummary",
    "average",
    "bench_decode",
    "bench_train",
    "bring",
    "compare",
    "curves",
    "data_report",
    "demo",
    "evaluate",
    "export",
    "inspect",
    "push",
    "stand_alone",
    "suggest",
    "train",
]
