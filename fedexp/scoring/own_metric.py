"""A user's own metric: any function of all probabilities and targets, named `module:function`.

It gets copies of `probabilities [S, K]` (float64) and `targets [S]` (int64), of labels `targets [S, K]`. It returns a
finite number, the higher the better, or NaN where it is undefined.
Legend: S examples, K classes (or labels).
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.fields import describe_value
from fedexp.core.imports.importing import import_object
from fedexp.core.user_code import refuse_changed_settings, refuse_errors

KEY = "evaluation.metrics"


@dataclass(frozen=True)
class OwnMetric:
    """The function that `entry` names; called like a built-in metric that needs all outputs."""

    entry: str

    def function(self) -> Callable[[np.ndarray, np.ndarray], Any]:
        """The function of probabilities `[S, K]` and targets `[S]` or `[S, K]`, imported.

        Raises:
            ConfigError: there is none, or it does not take probabilities and targets.
        """
        function = import_object(self.entry, KEY, "a function")
        if not callable(function):
            raise ConfigError(f"{KEY} must name functions, but {self.entry} is {describe_value(function)}")
        try:
            inspect.signature(function).bind(None, None)
        except ValueError:  # of C code, which does not say what it takes
            pass
        except TypeError as error:
            raise ConfigError(f"{KEY}: {self.entry} must take (probabilities, targets), but {error}") from None
        return function

    def __call__(self, probabilities: np.ndarray, targets: np.ndarray) -> float:
        """Its value for `probabilities [S, K]` and `targets [S]` or `[S, K]`; NaN where it is undefined.

        Raises:
            ConfigError: it raises an error, or answers something else than a number.
        """
        function = self.function()
        with refuse_changed_settings(f"{KEY}={self.entry}"), refuse_errors(f"{KEY}={self.entry}:", with_line=True):
            answer = function(probabilities.copy(), targets.copy())
            value = answer.item() if getattr(answer, "ndim", None) == 0 else answer  # of an array or a tensor
        if not isinstance(value, Real) or math.isinf(value):
            raise ConfigError(
                f"{KEY}: {self.entry} must return a finite number, or NaN where it is undefined, got "
                f"{describe_value(value)}"
            )
        return float(value)
