"""Mean and deviation of a number over several runs, as a text."""

import math

from fedexp.report.read.measures import Statistic

WHOLE = 1  # decimals of counts, which lose them where all are whole
_LARGE = 1e7  # from here on nobody reads all digits
_DIGITS = 4  # that matter where no decimals are asked for


def cell_text(value: Statistic, digits: int | None = None) -> str:
    """`mean ± std (k/n)`: no std below two values, and k of n only where some runs do not have the number.

    With `digits` unknown the mean shows four digits.
    """
    share = f" ({value.count}/{value.runs})" if value.count < value.runs else ""
    if value.mean is None:
        return f"-{share}"
    if digits is None:
        digits = _four_digits(value.mean)
    elif digits == WHOLE and value.mean.is_integer() and not value.std:
        digits = 0
    form = f",.{digits}f" if abs(value.mean) < _LARGE else f".{_DIGITS}g"
    spread = "" if value.std is None else f" ± {value.std:{form}}"
    return f"{value.mean:{form}}{spread}{share}"


def _four_digits(mean: float) -> int:
    if not math.isfinite(mean) or mean == 0:
        return 1
    return min(6, max(1, _DIGITS - 1 - math.floor(math.log10(abs(mean)))))
