"""What metrics are called in texts and headings; in files and keys they bear the names of `evaluation.metrics`."""

_TEXTS = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "ece": "ECE",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "macro_f1": "macro F1",
    "top5": "top-5 accuracy",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier score",
}


def metric_text(name: str) -> str:
    """A metric within a sentence; one of the user bears its own name.

    Example:
        >>> metric_text("auroc"), metric_text("accuracy")
        ('AUROC', 'accuracy')
    """
    return _TEXTS.get(name, name)


def metric_title(name: str) -> str:
    """A metric at the beginning of a title.

    Example:
        >>> metric_title("macro_f1"), metric_title("accuracy")
        ('Macro F1', 'Accuracy')
    """
    text = metric_text(name)
    return text[:1].upper() + text[1:]
