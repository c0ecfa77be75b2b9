"""The launchers that `hydra/launcher=...` names, with their settings under `hydra.launcher`.

They are no YAML files, because a plugin of Hydra's may be installed that has the same name: in Hydra's store the last
one counts, beside a file both would.
"""

from typing import Any

BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"  # what Hydra's own config names
_SUBMITIT = {"timeout_min": 60, "cpus_per_task": 1, "gpus_per_node": 0, "parameters": None}
LAUNCHERS: dict[str, dict[str, Any]] = {
    "joblib": {"_target_": "fedexp.sweep.launchers.joblib.Joblib", "jobs": "${usable_cores:}"},
    "submitit_local": {
        "_target_": "fedexp.sweep.launchers.submitit.Submitit",
        "cluster": "local",
        "parallel": "${usable_cores:}",
        **_SUBMITIT,
        "timeout_min": 60 * 24 * 7,
    },
    "submitit_slurm": {
        "_target_": "fedexp.sweep.launchers.submitit.Submitit",
        "cluster": "slurm",
        "parallel": 256,
        **_SUBMITIT,
    },
    "ray": {"_target_": "fedexp.sweep.launchers.ray.Ray", "address": None, "cpus": 1, "gpus": None, "jobs": None},
}


# What tab completion offers of Hydra's groups, of which no file says it.
HYDRA_OPTIONS = {"hydra/launcher": ("basic", *LAUNCHERS), "hydra/sweeper": ("basic", "one_at_a_time")}


def register() -> None:
    """Makes the launchers known by their names, once Hydra has looked for its plugins."""
    from hydra.core.config_store import ConfigStore  # completing a word need not wait for it

    for name, node in LAUNCHERS.items():
        ConfigStore.instance().store(group="hydra/launcher", name=name, node=node, provider="fedexp")
