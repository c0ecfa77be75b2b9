"""What the name of a quantity in the tables says of it: how it is written, and whether more is better."""

from fedexp.maths.curve_metrics import RECALL, SHARES, higher_is_better
from fedexp.maths.metric_names import metric_text
from fedexp.report.draw.statistic_text import WHOLE

COUNTS = ("selections", "rounds", "participants/round")
_ACCURACY = 4  # decimals
_METRIC = ("final ", "best ", "personal ", "site ")  # what a quantity of a metric begins with
_LESS_IS_BETTER = ("loss AUC", "RoA@")


def decimals(quantity: str) -> int | None:
    """The decimals that a quantity is shown with; None where they depend on its size."""
    if is_share(quantity):
        return _ACCURACY
    return WHOLE if quantity in COUNTS or quantity.startswith("RoA@") else None


def is_share(quantity: str) -> bool:
    """Whether a quantity goes from 0 to 1."""
    metric = quantity.partition(" ")[2]
    return quantity.startswith(_METRIC) and (metric.startswith(RECALL) or quantity.endswith(SHARES))


def more_is_better(quantity: str, metric: str) -> bool | None:
    """None for what is neither good nor bad, and for seconds of the host, which depend on what else it did."""
    if quantity.startswith(_METRIC):
        return higher_is_better(quantity.partition(" ")[2] if quantity.startswith("final ") else metric)
    simulated = quantity.startswith("ToA@") and quantity.endswith(" sim s")
    return False if simulated or quantity.startswith(_LESS_IS_BETTER) else None


def heading(quantity: str) -> str:
    """A quantity as the heading of a column: `final AUROC` of `final auroc`."""
    if not quantity.startswith(_METRIC) or quantity.startswith(f"final {RECALL}"):
        return quantity
    words, metric = quantity.rpartition(" ")[::2]
    return f"{words} {metric_text(metric)}"
