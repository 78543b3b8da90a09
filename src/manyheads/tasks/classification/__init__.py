"""Classification: an encoder, trained on texts with a label each, that labels texts."""

from manyheads.former_names import former_names

__getattr__ = former_names(
    __name__,
    {
        "Classification": "inference.classifier",
        "Classifier": "inference.classifier",
        "Labels": "inference.labels",
    },
)
