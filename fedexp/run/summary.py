"""summary.json: the figures of a run, and the program and machine that made them."""

import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.core.nested import json_text
from fedexp.core.values import State
from fedexp.files import run_tables
from fedexp.files.atomic import write_atomically
from fedexp.maths import curve_metrics
from fedexp.parts.federation.statistics import label_distances, size_gini, size_spread
from fedexp.process.version import __version__
from fedexp.report.read.skipped import skipped_rounds
from fedexp.run import banner
from fedexp.run.environment import device_name, installed_version, instructions
from fedexp.run.metric_notes import describe_constant_answer
from fedexp.run.tables import METRICS
from fedexp.simulation import context
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

if TYPE_CHECKING:
    import pandas as pd


def read_metrics(path: Path) -> "pd.DataFrame":
    """metrics.csv as a table; empty cells are NaN."""
    return run_tables.read_frame(path, METRICS)


def figures(
    exp: Experiment, world: World, state: State, table: "pd.DataFrame", digests: Iterable[run_tables.Line]
) -> dict[str, Any]:
    """The entries that follow from the tables, the last state and the world, in a run as in `fedexp verify`.

    What does not exist is None; so is a number of skipped rounds or validation examples that is 0. `digests` are the
    lines of digests.csv.
    """
    skipped = [] if exp.scenario.trains_alone else skipped_rounds(table, digests)
    main, seconds = exp.metrics[0], table["sim_s" if exp.has_clock else "host_s"]
    values, higher = table[f"test_{main}"], curve_metrics.higher_is_better(main)
    roa, toa = (curve_metrics.thresholds(setting, main) for setting in (exp.evaluation.roa, exp.evaluation.toa))
    return {
        f"final_{main}": curve_metrics.last(values),
        f"best_{main}": curve_metrics.best(values, higher),
        **{f"final_{name}": value for name, value in _further_finals(exp, table).items()},
        "constant_answer": describe_constant_answer(world, state, table),
        "loss_auc": curve_metrics.area_to_end(table["test_loss"]),
        f"{main}_auc": curve_metrics.area_to_end(values),
        "roa": {str(x): curve_metrics.rounds_to(values, x, table["round"], higher) for x in roa},
        "toa": {str(x): curve_metrics.time_to(values, seconds, x, higher) for x in toa},
        "privacy": privacy_guarantee(exp, table),
        "rounds": state.round,
        "skipped_rounds": len(skipped) or None,
        "updates": state.updates,
        "stopped": state.memory.get("stop", {}).get("reason"),
        "host_s": state.host_s,
        "sim_s": state.sim_s if exp.has_clock else None,
        "audit": audit_verdict(exp, table),
        "public_examples": context.make_context(world, state.round).public.size,
        "validation_examples": world.validation_size or None,
        **{
            f"{role}.{name}": value
            for role, role_figures in world.preparation_figures.items()
            for name, value in role_figures.items()
        },
        **_world_figures(world),
        **_split_figures(world),
    }


def _world_figures(world: World) -> dict[str, Any]:
    """How many clients and parameters there are, and what of the settings does nothing."""
    clients = world.partition.clients
    return {
        "without_effect": [*banner.without_effect(world.exp, clients)] or None,
        "clients": clients,
        "parameters": world.layout.parameters,
    }


def _split_figures(world: World) -> dict[str, Any]:
    """What the clients hold, how much their labels and sizes differ, and who of them is malicious."""
    distances = label_distances(world.class_counts) if len(world.label_names) > 1 else None
    return {
        "data_sha256": world.data_sha256,
        "split_sha256": world.sites.sha256(),
        "label_skew": distances and distances["total_variation"]["mean"],
        "label_distances": distances,
        "size_gini": size_gini(world.sites.sizes),
        "size_spread": size_spread(world.sites.sizes),
        "malicious_clients": world.malicious.tolist() or None,
    }


def provenance(exp: Experiment, world: World) -> dict[str, Any]:
    """The versions of the program and its libraries, and the machine."""
    return {
        "versions": {
            "fedexp": __version__,
            "python": platform.python_version(),
            **{name: installed_version(name) for name in ("torch", "numpy", "hydra-core")},
        },
        "git": git_commit(),
        "device": device_name(exp),
        "instructions": instructions(),
        "engine": {"name": world.choice.name, "reason": world.choice.reason, "workers": world.pool.size},
    }


def audit_verdict(exp: Experiment, table: "pd.DataFrame") -> dict[str, Any] | None:
    """The audit's verdict on the last evaluated round; None without an audit."""
    evaluated = table[table["test_loss"].notna()]
    if not len(evaluated):
        return None
    last = evaluated.iloc[-1]
    row = {str(name): None if value != value else value for name, value in last.items()}
    return exp.audit.verdict(row | exp.privacy.example_columns(row))


def _further_finals(exp: Experiment, table: "pd.DataFrame") -> dict[str, float | None]:
    """The last values on the test data of the metrics beside the main one, and that of the clients' own models."""
    columns = [*(f"test_{name}" for name in exp.metrics[1:]), f"personal_{exp.metrics[0]}"]
    return {column.removeprefix("test_"): curve_metrics.last(table[column]) for column in columns if column in table}


def privacy_promise(exp: Experiment) -> str | None:
    """What is promised and what is not covered by it; None if nothing is promised."""
    promise = exp.privacy.promise()
    return promise and ", ".join(filter(None, (promise, exp.dataset.leaks())))


def privacy_guarantee(exp: Experiment, table: "pd.DataFrame") -> dict[str, Any] | None:
    """The privacy spent by the end, and what was promised; None if nothing was."""
    promise = privacy_promise(exp)
    if promise is None:
        return None
    names = [name for name in ("epsilon_rdp", "epsilon_pld") if f"privacy.{name}" in table]
    spent = {name: curve_metrics.last(table[f"privacy.{name}"]) for name in names}
    return {**spent, **exp.privacy.terms(), "promise": promise}


def write(path: Path, summary: dict[str, Any]) -> None:
    """Writes the summary, whole or not at all."""
    write_atomically(path, json_text(summary).encode())


@cache
def git_commit() -> dict[str, Any] | None:
    """Commit of the program's own checkout, and whether it was changed; None if it is installed without one.

    It is asked for once a process, as the program is imported once.
    """
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(root, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
