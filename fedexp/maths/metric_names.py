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


_KINDS = {"test": "Test", "validation": "Validation", "personal": "Personal", "site": "Site"}
_OVER_CLIENTS = {
    "worst_decile": "{}, worst tenth of clients",
    "best_decile": "{}, best tenth of clients",
    "std": "{}, deviation over clients",
    "jain": "{}, Jain's index over clients",
}


def column_title(column: str, metric: str) -> str:
    """A column of metrics.csv as a title, where its name has a kind of data; `metric` is the main one.

    Example:
        >>> column_title("test_macro_f1", "accuracy"), column_title("personal_jain", "accuracy")
        ('Test macro F1', "Personal accuracy, Jain's index over clients")
    """
    kind, _, name = column.partition("_")
    if kind not in _KINDS:
        return column
    text = _OVER_CLIENTS[name].format(metric_text(metric)) if name in _OVER_CLIENTS else metric_text(name)
    return f"{_KINDS[kind]} {text}"


def metric_title(name: str) -> str:
    """A metric at the beginning of a title.

    Example:
        >>> metric_title("macro_f1"), metric_title("accuracy")
        ('Macro F1', 'Accuracy')
    """
    text = metric_text(name)
    return text[:1].upper() + text[1:]
