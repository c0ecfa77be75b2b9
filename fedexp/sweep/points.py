"""Expands a sweep into its points and checks them before the first one runs."""

import logging
import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict

from fedexp.config import one_at_a_time, roles
from fedexp.config.compose import Composer, Request, raw_config, resolve_config
from fedexp.config.override_text import key_of
from fedexp.core.errors import ConfigError
from fedexp.files.url_credentials import without_password
from fedexp.report.read.methods import freeze
from fedexp.run.validate import ValidRun, validate_config
from fedexp.sweep import point_list

CHECKED_AT_MOST = 200
MOST_POINTS = 100_000
SWEEPERS = {one_at_a_time.BASIC: one_at_a_time.combinations, one_at_a_time.NAME: one_at_a_time.expand_points}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Point:
    """One combination of a sweep."""

    number: int
    overrides: list[str]
    config: DictConfig | None = field(default=None, compare=False, repr=False)  # where it was composed to be checked

    def __str__(self) -> str:
        return f"point {self.number} ({self.words}): "

    @property
    def words(self) -> str:
        """Its overrides as one text, without passwords."""
        return self.words_without(())

    def words_without(self, common: Collection[str]) -> str:
        """Its overrides as one text, but for those that other points have too."""
        return without_password(" ".join(word for word in self.overrides if word not in common))


def common_words(points: Sequence[Point]) -> set[str]:
    """The overrides that all of several points have; none of a single point, which has nothing to be told from."""
    return set.intersection(*(set(point.overrides) for point in points)) if len(points) > 1 else set()


def compose(composer: Composer, request: Request, with_log_configuration: bool = False) -> DictConfig:
    """The config that all points of a sweep start from."""
    overrides = point_list.with_points(request.overrides) if request.typed else request.overrides
    words = [*(word for word in overrides if not point_list.is_points(word)), "hydra.mode=MULTIRUN"]
    later_words = [word for word in overrides if point_list.is_points(word)]
    try:
        config = composer.compose_config(request.config_name, words, RunMode.MULTIRUN, with_log_configuration)
    except ConfigError:
        if not (of_points := _words_of_swept_parts(composer, overrides)):
            raise
        words, later_words = [word for word in words if word not in of_points], [*of_points, *later_words]
        config = composer.compose_config(request.config_name, words, RunMode.MULTIRUN, with_log_configuration)
    config.hydra.overrides.task.extend(later_words)
    drop_overridden_params(config)
    return config


def _words_of_swept_parts(composer: Composer, words: Sequence[str]) -> list[str]:
    """The words that set keys of parts that a sweep chooses: the options of its points have them, not the usual one."""
    listed = [word for point in point_list.split(words)[1] or () for word in point]
    parsed = OverridesParser.create().parse_overrides([word for word in words if not point_list.is_points(word)])
    swept = {override.key_or_group for override in parsed if override.is_sweep_override()} | set(map(key_of, listed))
    changed = swept & set(composer.points.groups)
    if changed - set(roles.role_names()):  # a bundle chooses parts of any role
        changed |= set(roles.role_names())
    return [
        str(override.input_line)
        for override in parsed
        if override.key_or_group.partition(".")[0] in changed and "." in override.key_or_group
    ]


def expand_points(composer: Composer, config: DictConfig) -> list[Point]:
    """Every point, numbered as the sweeper does; none for a sweeper that chooses points as it goes.

    A word that refers to another key follows it in each point.
    """
    hydra = raw_config(config.hydra)
    words = one_at_a_time.join_overrides(hydra["sweeper"].get("params"), hydra["overrides"]["task"])
    with composer.explain_errors(config.hydra.job.config_name, words):
        combinations = expand_words(config.hydra.sweeper.get("_target_"), words)
    return [Point(number, overrides) for number, overrides in enumerate(combinations or [])]


def expand_words(sweeper: Any, words: Sequence[str]) -> list[list[str]] | None:
    """The overrides of every point of these words; None for a sweeper that chooses points as it goes.

    A listed point meets every combination of the other words; a key that it sets is not swept.
    """
    expand, (other_words, listed) = SWEEPERS.get(str(sweeper)), point_list.split(words)
    if expand is None and listed is not None:
        raise ConfigError("points=... works only with hydra/sweeper=basic or one_at_a_time; choose one of them")
    if expand is None:
        return None
    overrides = OverridesParser.create().parse_overrides(other_words)
    refuse_too_many(overrides, crossed=expand is one_at_a_time.combinations, times=len(listed or [[]]))
    points = []
    for point in map(OverridesParser.create().parse_overrides, listed or [[]]):
        keys = {override.key_or_group for override in point}
        points += expand([*point, *(override for override in overrides if override.key_or_group not in keys)])
    return points


def refuse_too_many(overrides: Sequence[Override], crossed: bool, times: int = 1) -> None:
    """Raises ConfigError if a sweep has more than `MOST_POINTS` points, before it is expanded `times` times."""
    counts = {override.input_line: count_values(override) for override in overrides if override.is_sweep_override()}
    total = times * (math.prod(counts.values()) if crossed else max(1, sum(counts.values())))
    if times > MOST_POINTS:
        raise ConfigError(f"a sweep must have at most {MOST_POINTS:,} points, but points=... lists {times:,}")
    if counts and total > MOST_POINTS:
        word = max(counts, key=lambda line: counts[line])
        raise ConfigError(f"a sweep must have at most {MOST_POINTS:,} points, but {word} makes it {total:g}; lower it")


def count_values(override: Override) -> float:
    """How many values an override sweeps over; 1 if that is not known here."""
    swept = override.value()
    if isinstance(swept, RangeSweep) and swept.start is not None and swept.stop is not None:
        return max(0, math.ceil((swept.stop - swept.start) / swept.step)) if swept.step else math.inf
    return len(swept.list) if isinstance(swept, ChoiceSweep) else 1


def drop_overridden_params(config: DictConfig) -> None:
    """Removes from an experiment's sweep the keys that the command line sets."""
    params = config.hydra.sweeper.get("params") or {}
    overridden_keys = {key_of(str(word)) for word in config.hydra.overrides.task}
    with open_dict(config):
        for key in [key for key in params if key in overridden_keys]:
            del params[key]


def check_points(composer: Composer, config: DictConfig) -> list[Point]:
    """Refuses a sweep with an impossible point, or one twice; a very long one is checked in part: composing takes time.

    Copies would rank as further seeds.
    """
    todo = expand_points(composer, config)
    common = common_words(todo)
    _refuse_copies(todo, (frozenset(point.overrides) for point in todo))
    valid = [validate_point(composer, config, point, common) for point in todo[:CHECKED_AT_MOST]]
    _refuse_copies(todo, (freeze(run.config) for _, run in valid), common)
    if len(todo) > CHECKED_AT_MOST:
        log.info("Checked the first %d of %d points", CHECKED_AT_MOST, len(todo))
    checked_points = [
        replace(point, config=point_config) for point, (point_config, _) in zip(todo, valid, strict=False)
    ]
    return checked_points + todo[CHECKED_AT_MOST:]


def _refuse_copies(points: Sequence[Point], contents: Iterable[Hashable], common: Collection[str] = ()) -> None:
    """Raises ConfigError if two of the first points have the same content; names them by their words less `common`."""
    first: dict[Hashable, Point] = {}
    for point, content in zip(points, contents, strict=False):
        if (earlier := first.setdefault(content, point)) is not point:
            earlier_name = _name(earlier, {*common, *point.overrides})
            raise ConfigError(
                f"{_name(point, common)}: every point must be another run, but {earlier_name} has the same config; "
                "leave one out"
            )


def validate_point(
    composer: Composer, config: DictConfig, point: Point, common: Collection[str] = ()
) -> tuple[DictConfig, ValidRun]:
    """Composes and checks a point; returns its complete config, with Hydra's keys, as well.

    Raises:
        ConfigError: the point is impossible; it is named by its words less the `common` ones.
    """
    try:
        point_config = compose_point(composer, config, point)
        return point_config, validate_config(composer, point_config, point.overrides)
    except ConfigError as error:
        raise ConfigError(f"{_name(point, common)}: {error}") from error


def _name(point: Point, common: Collection[str]) -> str:
    words = point.words_without(common)
    return f"point {point.number}{words and f' ({words})'}"


def compose_point(composer: Composer, config: DictConfig, point: Point) -> DictConfig:
    """Composes the complete config of a point, with Hydra's keys, unchecked."""
    point_config = point.config
    if point_config is None:
        with composer.explain_errors(config.hydra.job.config_name, point.overrides):
            point_config = composer.points.compose_point(config, point.overrides)
    else:
        _copy_folder(point_config, config)
    with open_dict(point_config):
        point_config.hydra.job.id = point_config.hydra.job.num = point.number
    HydraConfig.instance().set_config(deepcopy(point_config))  # it freezes what it is given; `${hydra:...}` asks it
    return point_config


def resolve_point(composer: Composer, point_config: DictConfig, point: Point) -> dict[str, Any]:
    """The plain config of a point, given its complete one."""
    with composer.explain_errors(point_config.hydra.job.config_name, point.overrides):
        return resolve_config(point_config)


def _copy_folder(point_config: DictConfig, config: DictConfig) -> None:
    """Copies the sweep's folder, which was claimed later, into the config of a point composed for the check."""
    existing = list(point_config.hydra.overrides.hydra)
    point_config.hydra.sweep.dir = config.hydra.sweep.dir
    point_config.hydra.overrides.hydra.extend([word for word in config.hydra.overrides.hydra if word not in existing])
