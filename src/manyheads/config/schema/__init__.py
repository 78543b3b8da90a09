"""Every setting, defined once: type, default, unit, range, and section of the paper.

No other file holds a default. The tree is frozen, refuses unknown keys, and imports neither torch nor the
rest of the package. "Section 3.2" and the like point into Vaswani et al. (2017), "Attention Is All You Need".
"""

from manyheads.config.schema.config import Config
from manyheads.config.schema.data import DataConfig
from manyheads.config.schema.measured import MeasuredConfig
from manyheads.config.schema.model import ModelConfig
from manyheads.config.schema.tasks import METRICS, Task, languages_needed
from manyheads.config.schema.tokenizer import TokenizerConfig
from manyheads.config.schema.training import TrainingConfig
from manyheads.config.schema.use import EvaluationConfig, SearchConfig

__all__ = [
    "METRICS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "MeasuredConfig",
    "ModelConfig",
    "SearchConfig",
    "Task",
    "TokenizerConfig",
    "TrainingConfig",
    "languages_needed",
]
