"""The search space, read from the overrides of `fedexp search` in Hydra's own grammar.

`key=interval(a,b)`, `key=int(interval(a,b))`, `key=tag(log,interval(a,b))`, `key=range(a,b,step=c)` and
`key=choice(x,y,...)` are searched. Values listed with commas are compared: every combination is a method of its own.
`seed=0,1,2` is an exception: every trial is the mean over these seeds.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep
from hydra.errors import HydraException

from fedexp.config import roles
from fedexp.config.hydra_errors import explain
from fedexp.config.override_text import key_of
from fedexp.core.errors import ConfigError

LOG = "log"
TRAINING = ("evaluation.client_losses", "evaluation.fine_tune_epochs")  # of `evaluation`, what changes models
MAX_STEPS = 100_000  # steps of a range


@dataclass(frozen=True)
class Dimension:
    """One searched key: numbers from `low` to `high`, or one of `options`, written as in overrides."""

    key: str
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    is_integer: bool = False
    options: tuple[str, ...] = ()

    @property
    def distribution(self) -> Any:
        """What Optuna draws from."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.options:
            return CategoricalDistribution(self.options)
        if self.is_integer:
            return IntDistribution(int(self.low), int(self.high), self.log, 1 if self.step is None else int(self.step))
        return FloatDistribution(self.low, self.high, self.log, self.step)

    def suggest(self, trial: Any) -> str:
        """The override of a trial; a trial that has begun keeps its value."""
        if self.options:
            return f"{self.key}={trial.suggest_categorical(self.key, self.options)}"
        drawn = self.distribution
        suggest = trial.suggest_int if self.is_integer else trial.suggest_float
        return f"{self.key}={suggest(self.key, drawn.low, drawn.high, step=drawn.step, log=drawn.log)!r}"

    def extreme_overrides(self) -> tuple[str, ...]:
        """The overrides that set the key to its extreme values, or to each of its options."""
        if self.options:
            return tuple(f"{self.key}={option}" for option in self.options)
        return tuple(f"{self.key}={int(end) if self.is_integer else repr(end)}" for end in (self.low, self.high))


@dataclass(frozen=True)
class Space:
    """The fixed words, the methods that are compared, the seeds of a trial and the searched keys."""

    fixed: tuple[str, ...]
    methods: tuple[tuple[str, ...], ...]
    seeds: tuple[str, ...]
    dimensions: tuple[Dimension, ...]

    def refuse_useless(self) -> None:
        """Refuses what cannot tell good values from bad ones.

        Raises:
            ConfigError: a value is listed twice, a key changes no result, or trials would be judged differently.
        """
        _refuse_twice(self.seeds)
        _refuse_twice([" ".join(method) for method in self.methods])
        for dimension in self.dimensions:
            _refuse_twice([f"{dimension.key}={option}" for option in dimension.options])
            if _changes_no_result(key_of(dimension.key)):
                raise ConfigError(f"{dimension.key} changes no result, so a search must have one value of it")
        varied = [*(dimension.key for dimension in self.dimensions), *self.methods[0]]
        for key in (key for key in map(key_of, varied) if key.startswith("evaluation.") and key not in TRAINING):
            raise ConfigError(f"{key} must have one value in a search, which judges all trials alike")
        if any(word.lower() == "evaluation.validation=false" for word in self.fixed):
            raise ConfigError(
                "evaluation.validation must be true in a search, which judges trials on validation data, got false; "
                "leave it out"
            )

    def foreign_key(self, trial: Any) -> str | None:
        """A key whose value a trial did not draw from this space, or has not though it ended; None without one."""
        drawn, ours = trial.distributions, {dimension.key: dimension.distribution for dimension in self.dimensions}
        needed = {**drawn, **ours} if trial.state.is_finished() else drawn
        return next((key for key in needed if drawn.get(key) != ours.get(key)), None)

    def extreme_overrides(self) -> Iterator[list[str]]:
        """The overrides of all keys: every one at its first value, then each in turn at its other extreme values."""
        first = [dimension.extreme_overrides()[0] for dimension in self.dimensions]
        yield first
        for number, dimension in enumerate(self.dimensions):
            for end in dimension.extreme_overrides()[1:]:
                yield [*first[:number], end, *first[number + 1 :]]


def read(words: Sequence[str]) -> Space:
    """Parses overrides into the fixed ones, the methods, the seeds and the searched keys.

    Raises:
        ConfigError: nothing is searched, or a range cannot be.
    """
    last = {override.get_key_element(): override for override in _parse(words)}
    if "seed" in last and _is_searched(last["seed"]):
        raise ConfigError(f"seeds are listed, not searched: seed=0,1,2; got {last['seed'].input_line}")
    dimensions = tuple(_dimension(override) for override in last.values() if _is_searched(override))
    if not dimensions:
        raise ConfigError(
            "a search must vary something, e.g. 'local.lr=interval(0.01,1)' or 'local.epochs=choice(1,5)'"
        )
    listed = {
        key: list(override.sweep_string_iterator())
        for key, override in last.items()
        if override.is_sweep_override() and not _is_searched(override)
    }
    seed = str(last["seed"].input_line) if "seed" in last else "seed=0"
    seeds = tuple(f"seed={value}" for value in listed.pop("seed", [])) or (seed,)
    methods = product(*([f"{key}={value}" for value in values] for key, values in listed.items()))
    fixed = [
        str(override.input_line) for key, override in last.items() if not override.is_sweep_override() and key != "seed"
    ]
    return Space(tuple(fixed), tuple(methods), seeds, dimensions)


def _refuse_twice(values: Sequence[str]) -> None:
    """Raises ConfigError if a value is listed twice."""
    if twice := [value for number, value in enumerate(values) if value in values[:number]]:
        raise ConfigError(f"a search must have each listed value once, got {twice[0]} twice; leave one out")


def _changes_no_result(key: str) -> bool:
    from fedexp.run.state.checkpoint import NEUTRAL_KEYS  # it brings PyTorch

    return re.split("[./]", key)[0] in NEUTRAL_KEYS or roles.changes_no_result(key)


def _parse(words: Sequence[str]) -> list[Override]:
    try:
        return OverridesParser.create().parse_overrides(list(words))
    except HydraException as error:
        raise explain(error, words, list) from error


def _is_searched(override: Override) -> bool:
    value = override.value()
    simple = isinstance(value, ChoiceSweep) and value.simple_form
    return override.is_sweep_override() and not simple


def _dimension(override: Override) -> Dimension:
    key, value = override.get_key_element(), override.value()
    if isinstance(value, ChoiceSweep):
        return Dimension(key, options=tuple(override.sweep_string_iterator()))
    if not isinstance(value, IntervalSweep | RangeSweep):
        raise ConfigError(f"{key} must be searched by choice, interval or range; got {override.input_line}")
    unknown_tags = value.tags - {LOG}
    if unknown_tags:
        raise ConfigError(f"{key} has the tag {sorted(unknown_tags)[0]}; a search knows only log")
    log = LOG in value.tags
    if isinstance(value, IntervalSweep):
        low, high, step = value.start, value.end, None
        is_integer = isinstance(low, int) and isinstance(high, int)
    else:
        if log:
            raise ConfigError(f"{key} cannot be searched in steps with log; use interval instead of range")
        if not value.step or abs((value.stop or 0) - (value.start or 0)) / abs(value.step) > MAX_STEPS:
            raise ConfigError(f"{key} must be searched in at most {MAX_STEPS:,} steps, got {override.input_line}")
        values = [float(number) for number in override.sweep_string_iterator()]
        is_integer = all(isinstance(number, int) for number in (value.start, value.stop, value.step))
        low, high, step = values[0], float(f"{values[-1]:.15g}"), float(value.step)  # 0.1 + 0.2 is 0.3
    if low is None or high is None or not low < high or (log and low <= 0):
        raise ConfigError(
            f"{key} must be searched from a smaller to a larger value, above 0 with log; got {override.input_line}"
        )
    return Dimension(key, float(low), float(high), step, log, is_integer)
