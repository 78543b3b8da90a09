"""What a training goes on from (`model.init_from`): another run, or a pre-trained model of another program.

One interface for all kinds of task: the shape of the model, its vocabulary, its weights, and what became of them.
"""

from manyheads.runs.origins.interface import Origin
from manyheads.runs.origins.opening import open_origin
from manyheads.runs.origins.shape import with_initial_shape
from manyheads.runs.origins.vocabulary import initial_tokenizers
from manyheads.runs.origins.weights import take_weights

__all__ = ["Origin", "initial_tokenizers", "open_origin", "take_weights", "with_initial_shape"]
