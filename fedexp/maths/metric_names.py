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
    "personal_worst_decile": "{}, the worst tenth of clients",
    "personal_best_decile": "{}, the best tenth of clients",
    "personal_std": "{}, standard deviation over clients",
    "personal_jain": "{}, Jain's index over clients",
}


def column_text(column: str, measure: str) -> str:
    """What a column of metrics.csv measures, without its kind of data; `measure` is what its main metric is called.

    Example:
        >>> column_text("test_macro_f1", "AUROC"), column_text("personal_worst_decile", "AUROC")
        ('macro_f1', 'AUROC, the worst tenth of clients')
    """
    return _OVER_CLIENTS[column].format(measure) if column in _OVER_CLIENTS else column.partition("_")[2]


def column_title(column: str, metric: str) -> str:
    """A column of metrics.csv as a title, where its name has a kind of data; `metric` is the main one.

    Example:
        >>> column_title("test_macro_f1", "accuracy"), column_title("personal_jain", "accuracy")
        ('Test macro F1', "Personal accuracy, Jain's index over clients")
    """
    kind = column.partition("_")[0]
    return f"{_KINDS[kind]} {metric_text(column_text(column, metric_text(metric)))}" if kind in _KINDS else column


def metric_title(name: str) -> str:
    """A metric at the beginning of a title.

    Example:
        >>> metric_title("macro_f1"), metric_title("accuracy")
        ('Macro F1', 'Accuracy')
    """
    text = metric_text(name)
    return text[:1].upper() + text[1:]
