"""Classification: an encoder, trained on texts with a label each, that labels texts."""

from manyheads.tasks.classification.classifier import Classification, Classifier, Labels

__all__ = ["Classification", "Classifier", "Labels"]
