"""Which runs of a side KEY=VALUE words pick."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.report.read import methods
from fedexp.report.read.runs import Run


def pick_runs(selected_runs: Sequence[Run], folders: Sequence[Path], wishes: Mapping[str, str]) -> list[Run]:
    """The runs below the folders that have these values of keys and groups, as they would be typed.

    Raises:
        ConfigError: no run has one of them.
    """
    for key, value in wishes.items():
        values = [_text(run, key) for run in selected_runs]
        picked = [
            run
            for run, run_value in zip(selected_runs, values, strict=True)
            if run_value == value or _is_number_text(run.config.get(key), value)
        ]
        if not picked:
            if key in roles.role_names(changes_results=False):
                raise ConfigError(
                    f"{key} changes no result, so that runs are not told apart by it; pick by another key"
                )
            run_keys = [name for run in selected_runs for name in (*methods.options(run), *run.config)]
            run_keys.append("seed")
            if key not in run_keys:
                groups = catalog.groups(conf_dir())
                if key in groups:
                    raise ConfigError(f"no run below {', '.join(map(str, folders))} has chosen a {key}")
                names = dict.fromkeys([*run_keys, *groups])
                raise ConfigError(f"no run has a key {key}; {did_you_mean(key, [*names])}")
            available = ", ".join(sorted(set(values)))
            raise ConfigError(f"no run below {', '.join(map(str, folders))} has {key}={value}; there: {available}")
        selected_runs = picked
    return [*selected_runs]


def with_rounds(picked: Sequence[Run]) -> list[Run]:
    """Those that have finished a round.

    Raises:
        ConfigError: none has.
    """
    runs = [run for run in picked if run.has_rounds]
    if not runs:
        reasons = "; ".join(dict.fromkeys(run.failure or "it is at work or was interrupted" for run in picked))
        raise ConfigError(f"none of the {len(picked)} run(s) that are picked has finished a round: {reasons}")
    return runs


def _text(run: Run, key: str) -> str:
    """The option or value of a run, as a table shows it."""
    return str(run.seed) if key == "seed" else methods.options(run).get(key, short_text(run.config.get(key)))


def _is_number_text(number: object, text: str) -> bool:
    """Whether a text is this number, which may be written in many ways (0.10, 1e-1) and is shown with fewer digits."""
    try:
        return isinstance(number, int | float) and not isinstance(number, bool) and float(text) == number
    except ValueError:
        return False
