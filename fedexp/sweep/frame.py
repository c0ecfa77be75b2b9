"""The points of a sweep as a table for programs: a row a point, what tells it from the others and its main numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.config import saved_config
from fedexp.core.nested import lookup
from fedexp.files import summary_json
from fedexp.files.failure import read_failure
from fedexp.report.read.runs import natural_order
from fedexp.report.read.sweeps import planned_values
from fedexp.report.topics import sweep_table

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("final_{main}", "best_{main}", "loss_auc", "{main}_auc", "rounds", "updates", "host_s", "sim_s")


def frame(folder: Path) -> "pd.DataFrame":
    """A row a point: the keys that differ, seed, folder, and numbers of its summary, empty where it did not end.

    Where points failed, a column `failed` says why, in the words of the error.
    """
    import pandas as pd

    entries = points(folder)
    rows = [
        {**point["varied"], "seed": point["seed"], "folder": point["folder"], **point["numbers"]} for point in entries
    ]
    failures = [point["error"] for point in entries]
    return pd.DataFrame(rows).assign(**{"failed": failures} if any(failures) else {})


def points(folder: Path) -> list[dict[str, Any]]:
    """A mapping a point: `varied` holds the keys that differ, `numbers` those of the summary, None where there is none.

    `error` says why a point failed, and is None for others. A failed one has no numbers: if it came to its end, they
    would be those of the first model.

    Raises:
        ConfigError: the folder holds no points of a sweep.
    """
    runs = sweep_table.read_points(folder)
    folders = sorted((path.parent for path in folder.rglob(saved_config.NAME)), key=natural_order)
    lists = [key for key, values in planned_values(folders).values.items() if len(values) > 1]
    keys = [key for key in dict.fromkeys([*lists, *sweep_table.swept_keys(runs)]) if key != "seed"]
    configs = [saved_config.read(point_folder) for point_folder in folders]
    failures = [read_failure(point_folder) for point_folder in folders]
    summaries = [summary_json.read(point_folder) or {} for point_folder in folders]
    main = next((summary_json.main_metric(summary) for summary in summaries if summary), "accuracy")
    numbers = [form.format(main=main) for form in NUMBERS]
    return [
        {
            "varied": {key: _value(saved, key, run.overrides.get(key)) for key in keys},
            "seed": saved.config.get("seed"),
            "folder": str(point_folder.absolute()),
            "numbers": {name: None if failure else summary.get(name) for name in numbers},
            "error": failure,
        }
        for point_folder, run, summary, saved, failure in zip(folders, runs, summaries, configs, failures, strict=True)
    ]


def _value(saved: saved_config.SavedConfig, key: str, word: str | None) -> Any:
    """The value of a key as the config has it, or the option of a group."""
    value = lookup(saved.config, key)
    return saved.choices.get(key, word) if value is None or isinstance(value, Mapping) else value
