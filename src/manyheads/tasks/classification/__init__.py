"""Classification: an encoder, trained on texts with a label each, that labels texts."""

from manyheads.tasks.classification.classifier import Classification, Classifier
from manyheads.tasks.labels import Labels

__all__ = ["Classification", "Classifier", "Labels"]
