"""A sweep that varies one key at a time: `fedexp run -m hydra/sweeper=one_at_a_time local.lr=0.1,1 local.epochs=1,5`.

The first point is the centre, where every key has the value of the config; each further point gives one key one of the
values that are listed for it. Values are listed besides the centre's own, which would be a copy of it and is refused.
Seeds are no key to vary but repetitions: `seed=0,1,2` runs each of these points three times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override

from fedexp.core.errors import ConfigError

NAME = "fedexp.config.one_at_a_time.OneAtATime"
BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"  # what Hydra's own config names


@dataclass
class OneAtATime:
    """What `hydra/sweeper=one_at_a_time` puts under `hydra.sweeper`."""

    _target_: str = NAME
    params: dict[str, str] | None = field(default=None)


def join_overrides(params: Mapping[str, str] | None, arguments: Sequence[str]) -> list[str]:
    """The overrides that an experiment sweeps, then those of the command line, which replace them."""
    return [*(f"{key}={value}" for key, value in (params or {}).items()), *arguments]


def expand_points(overrides: Sequence[Override]) -> list[list[str]]:
    """The overrides of every point, the centre first; a later word for a key replaces an earlier one."""
    last = {override.get_key_element(): override for override in overrides}.values()
    crossed = combinations([override for override in last if not _is_varied(override)])
    deviations = [word for override in last if _is_varied(override) for word in combinations([override])]
    return [[*fixed, *deviation] for deviation in ([], *deviations) for fixed in crossed]


def combinations(overrides: Sequence[Override]) -> list[list[str]]:
    """The overrides of every point where each value meets each of the others; a later word replaces an earlier one."""
    listed = {override.get_key_element(): _list_values(override) for override in overrides}
    return [list(point) for point in product(*listed.values())]


def _list_values(override: Override) -> list[str]:
    key = override.get_key_element()
    if not override.is_sweep_override():
        has_reference = "${" in str(override.input_line)  # whose braces Hydra would escape
        return [str(override.input_line) if has_reference else f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise ConfigError(f"{key} must list its values, got {override.input_line}; write {key}=0,1 or {key}=range(2)")
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    if not values:
        raise ConfigError(f"{key} must have values, got {override.input_line}, which has none; write {key}=0,1")
    return values


def register() -> None:
    """Makes the sweeper known by its name."""
    ConfigStore.instance().store(group="hydra/sweeper", name="one_at_a_time", node=OneAtATime, provider="fedexp")


def _is_varied(override: Override) -> bool:
    return override.is_sweep_override() and override.key_or_group != "seed"
