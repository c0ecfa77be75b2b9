"""`fedexp run -m` and `fedexp resume` of a sweep: composes and checks it, runs its points, ranks them."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from hydra.types import TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedexp.config import saved_config
from fedexp.config.compose import Composer, Request, comparable_config, make_composer, raw_config
from fedexp.config.location import conf_dir
from fedexp.config.resolvers import with_environment, words_with_environment
from fedexp.config.trust import NO_TRUST, Trust, remember_modules
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.open_folders import open_folder
from fedexp.files.summary_bounds import Bound
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.files.url_credentials import without_passwords
from fedexp.maths.curve_metrics import metric_name
from fedexp.process.exits import FAILURE, CommandExit, resumable
from fedexp.process.terminal import print_text
from fedexp.process.torchrun import under_torchrun
from fedexp.run import folders
from fedexp.run.validate import refuse_bounds
from fedexp.sweep import saved_overrides
from fedexp.sweep.executor import Sweep, build_launcher, failure_message
from fedexp.sweep.launchers.contract import Basic
from fedexp.sweep.points import check_points, compose
from fedexp.sweep.points import expand_points as expand_points
from fedexp.sweep.repeated_keys import warn_of_repeated_keys

NAME = "multirun.yaml"


class PointsFailed(CommandExit):
    """Ends the command that ran a sweep in `folder`, of which points failed."""

    def __init__(self, message: str, folder: Path) -> None:
        super().__init__(FAILURE, message)
        self.folder = folder


def run(composer: Composer, request: Request, job: TaskFunction, bounds: Sequence[Bound] = ()) -> Path:
    """Runs every point and returns the folder; `job` runs one for the sweepers and launchers of Hydra's plugins.

    Bounds on metrics that no point measures are refused before the first one runs.
    """
    if under_torchrun():  # one process group and one store serve one run: a second would read the first one's results
        raise ConfigError("a sweep (-m) cannot run under torchrun; start torchrun once for each point")
    config = compose(composer, request, with_log_configuration=True)
    points, launcher = check_points(composer, config), build_launcher(config)
    metric_lists = [(point.config or config).evaluation.metrics for point in points] or [config.evaluation.metrics]
    refuse_bounds(bounds, metric_lists)
    if not points and launcher is not None and not isinstance(launcher, Basic):
        raise ConfigError(
            "this launcher works only with hydra/sweeper=basic or one_at_a_time; choose one of them, or "
            "hydra/launcher=basic"
        )
    warn_of_repeated_keys(request.overrides)
    folder = folders.claim_from_config(config.hydra.sweep)
    _set_folder(config, folder)
    with open_folder(folder):
        write_atomically(folder / NAME, saved_config.as_text(_with_environment(config)).encode())
        if launcher is None or not points:
            composer.multirun(request.config_name, job, [point.overrides for point in points])
            _conclude(folder, config.evaluation)
            return folder
        remember_modules(config_dir=request.config_dir)
        _execute(Sweep(composer, config, points, launcher, trust=Trust(composed=True)))
    return folder


def resume(
    folder: Path,
    words: Sequence[str],
    tracker: dict[str, Any] | None = None,
    trust: Trust = NO_TRUST,
) -> None:
    """Runs what is missing or unfinished in the folder of a sweep; `words` may choose another launcher.

    All points get the `tracker`, if one is given; for finished points, what it lacks is sent.

    Raises:
        ConfigError: the sweep cannot be composed again as it was.
    """
    saved, path = _read_saved(folder), folder / NAME
    odd = [word for word in words if not word.startswith(("hydra/launcher=", "hydra.launcher."))]
    if odd:
        raise ConfigError(f"a sweep goes on as it began, but for hydra/launcher and tracker; got {odd[0]}")
    request = Request(
        conf_dir(),
        [*saved_overrides.read_overrides(saved, words, path), *words],
        saved_overrides.read_config_name(saved, path),
        trust.options(saved_overrides.read_config_dir(saved), folder),
        typed=False,
    )
    composer, config = _recompose(request, saved, folder, trust)
    saved_config.refuse_changed_below(folder, trust)
    _set_folder(config, folder)
    points, launcher = expand_points(composer, config), build_launcher(config)
    if launcher is None or not points:
        raise ConfigError(
            f"{display_path(folder)} belongs to a plugin of Hydra, which decides about its points; start it anew"
        )
    for point in points:
        saved_overrides.refuse_hydra(point.overrides, path)
    sweep = Sweep(composer, config, points, launcher, tracker, trust)
    sweep.demand_addresses()
    _execute(sweep)


def _recompose(request: Request, saved: dict[str, Any], folder: Path, trust: Trust) -> tuple[Composer, DictConfig]:
    """Composes the config of a sweep as it was begun; refuses modules that are not trusted."""
    from fedexp.run.state.checkpoint import changed_keys  # it brings PyTorch

    composer = make_composer(request)
    config = compose(composer, request, with_log_configuration=True)
    for named_config in (raw_config(config), comparable_config(config)):
        trust.refuse_untrusted({**named_config, "hydra": None}, folder)
    with composer.explain_errors(request.config_name, request.overrides):
        composed = without_passwords(raw_config(_with_environment(config)))
    if changed := changed_keys(saved, composed):
        raise ConfigError(
            f"{display_path(folder)} was begun with other configs: {changed}; restore these keys or start a new sweep"
        )
    return composer, config


def _execute(sweep: Sweep) -> None:
    folder = Path(sweep.config.hydra.sweep.dir)
    with resumable(folder), folders.lock_folder(folder):
        failed = sweep.execute()
        _conclude(folder, sweep.config.evaluation)
    if failed:
        raise PointsFailed(failure_message(failed, len(sweep.points), folder), folder)


def _with_environment(config: DictConfig) -> DictConfig:
    """The config to save, with environment variables' values: a folder must not read its reader's environment."""
    words = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    config = with_environment(deepcopy(config))
    config.hydra.overrides.task = words_with_environment(cast(list[str], words))
    return config


def _set_folder(config: DictConfig, folder: Path) -> None:
    """Puts the folder into the overrides, from which each point is composed again."""
    config.hydra.sweep.dir = str(folder)
    quoted = str(folder).replace("'", r"\'")
    config.hydra.overrides.hydra.append(f"hydra.sweep.dir='{quoted}'")


def _conclude(folder: Path, evaluation: DictConfig) -> None:
    """Ranks the points of a sweep that has ended, and draws accuracy against privacy."""
    from fedexp.report.topics import privacy, sweep_table

    metric = metric_name(evaluation.metrics[0]) if evaluation.metrics else "loss"
    print_text(sweep_table.conclude(folder, evaluation.rank_on, metric))
    print_text(f"sweep  {display_path(folder / 'sweep.csv')}\n")
    print_text("".join(f"figure  {display_path(path)}\n" for path in privacy.conclude(folder)))


def _read_saved(folder: Path) -> dict[str, Any]:
    saved = read_yaml(folder / NAME)
    if not isinstance(saved.get("hydra"), dict):
        raise ConfigError(f"{display_path(folder / NAME)} must hold the config of a sweep, with its words under hydra")
    return saved
