"""`fedexp run` and `fedexp resume`: checked first, then handed to Hydra, in a folder of its own."""

import logging
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fedexp.config import saved_config
from fedexp.config.bundles import refuse_replaced_parts
from fedexp.config.compose import Composer, Request, make_composer, raw_config, resolve_config
from fedexp.config.hydra_errors import explain_unknown_key, refuse_missing_folders
from fedexp.config.location import conf_dir
from fedexp.config.override_text import short_text
from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys, walk
from fedexp.core.part import build as build_parts
from fedexp.files.atomic import display_path, shell_path
from fedexp.files.failure import TRACEBACK
from fedexp.files.summary_bounds import Bound
from fedexp.process import logs
from fedexp.process.exits import exit_on_error
from fedexp.process.terminal import print_text
from fedexp.process.torchrun import rank
from fedexp.run import change_tracker, folders
from fedexp.run.validate import ValidRun, refuse_bounds, validate_config
from fedexp.sweep import command, point_list
from fedexp.sweep.points import Point
from fedexp.sweep.repeated_keys import warn_of_repeated_keys
from fedexp.sweep.unswept_keys import warn_of_unswept_keys
from fedexp.sweep.unused_keys import warn_of_unused_keys

Watch = Callable[[dict[str, Any]], None]  # called with the line of every round

_SHOWN = 3  # keys in a message

log = logging.getLogger(__name__)


def launch(arguments: Namespace, bounds: Sequence[Bound] = ()) -> Path | None:
    """Runs what the arguments of `fedexp run` ask for: one run, a sweep, or a look at the config.

    Bounds on metrics that are not measured are refused before anything begins.

    Returns: the folder of the run or sweep; None after a look, and in every process of torchrun but the first.
    """
    request = Request(conf_dir(), arguments.overrides, arguments.config_name, arguments.config_dir)
    try:
        with logs.restore_logging():
            composer = make_composer(request)
            if arguments.cfg is not None:
                _show_config(composer, request, arguments)
            elif arguments.info is not None:
                with composer.explain_errors(request.config_name, request.overrides), refuse_missing_folders():
                    composer.hydra.show_info(arguments.info, request.config_name, request.overrides)
            elif arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides:
                return command.run(composer, request, job, bounds)
            else:
                return _single(composer, request, bounds)
    finally:
        GlobalHydra.instance().clear()
    return None


def resume(folder: Path, words: Sequence[str] = (), trust: Trust = NO_TRUST) -> int:
    """Continues the run of a folder, or the sweep."""
    try:
        node = change_tracker.tracker_from_words(
            [word for word in words if word.startswith(change_tracker.TRACKER_PREFIXES)], trust.config_dir
        )
        trust = change_tracker.extend_trust(trust, node)
        other_words = [word for word in words if not word.startswith(change_tracker.TRACKER_PREFIXES)]
        if folders.is_sweep(folder):
            with logs.restore_logging():
                command.resume(folder, other_words, node, trust)
            return 0
    finally:
        GlobalHydra.instance().clear()
    if other_words:
        raise ConfigError(f"a run goes on as it began, but for tracker=...; start a new one to change {other_words[0]}")
    config = read_config(folder, trust)
    change_tracker.write_tracker(folder, node)
    if node is not None:
        config["tracker"] = node
    with logs.restore_logging():
        from fedexp.run.run import resume

        if rank():
            _follow(config)
            return 0
        with exit_on_error(folder):
            logs.log_to(folder)
            resume(config, folder, trust)
        (folder / TRACEBACK).unlink(missing_ok=True)  # of a point that had failed
    return 0


def job(config: DictConfig, valid_run: ValidRun | None = None, watch: Watch | None = None) -> None:
    """What Hydra calls for a single run, and its plugins for each point of a sweep, which nobody has checked."""
    hydra = HydraConfig.get()
    folder = Path(display_path(Path(hydra.runtime.output_dir)))
    with exit_on_error(folder, "" if valid_run else str(Point(hydra.job.num, list(hydra.overrides.task)))):
        from fedexp.run.run import run

        if valid_run is not None:
            run(valid_run.config, folder, valid_run.exp, watch)
            return
        run_config = resolve_config(config)
        composed = OmegaConf.create(raw_config(config) | {"hydra": OmegaConf.to_container(hydra, resolve=False)})
        saved_config.save(folder, composed, run_config)
        run(run_config, folder)


def single(composer: Composer, request: Request, console: bool, watch: Watch | None = None) -> Path:
    """Executes one run for a script, whose logging Hydra must not replace, and returns its folder."""
    with _script_folder(composer, request, console) as (folder, valid_run):
        task = partial(job, valid_run=valid_run, watch=watch)
        composer.run(request.config_name, task, request.overrides, with_log_configuration=False)
    return folder.absolute()


def single_rounds(composer: Composer, request: Request, console: bool) -> Generator[dict[str, Any], None, None]:
    """Executes one run for a script and yields the line of every round; without the callbacks of Hydra's plugins."""
    with _script_folder(composer, request, console) as (folder, valid_run), exit_on_error(folder):
        from fedexp.run.run import rounds

        with _left_early(folder):
            yield from rounds(valid_run.config, folder, valid_run.exp)


@contextmanager
def _left_early(folder: Path) -> Iterator[None]:
    """Ends quietly where a script leaves its loop over rounds, which is no failure."""
    try:
        yield
    except GeneratorExit:
        log.info("left before its end; continue with: fedexp resume %s", shell_path(folder))


def remaining_rounds(
    composer: Composer, request: Request, folder: Path, console: bool, trust: Trust, watch: Watch | None = None
) -> Generator[dict[str, Any], None, None]:
    """Continues the run of a folder for a script that asks for the same run, and yields the line of every round.

    Raises:
        ConfigError: the folder holds another run.
    """
    composed = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    config, saved = validate_config(composer, composed, request.overrides).config, read_config(folder, trust)
    keys, saved_keys = flatten_keys(config), flatten_keys(saved)
    if changed := [key for key in {**saved_keys, **keys} if saved_keys.get(key) != keys.get(key)]:
        differences = ", ".join(f"{key}={short_text(saved_keys.get(key))}" for key in changed[:_SHOWN])
        raise ConfigError(
            f"{display_path(folder)} holds another run, with {differences}{', ...' if len(changed) > _SHOWN else ''}; "
            "choose another folder"
        )
    with exit_on_error(folder):
        from fedexp.run.run import remaining_rounds

        logs.log_to(folder, console)
        with _left_early(folder):
            yield from remaining_rounds(config, folder, watch)


@contextmanager
def _script_folder(composer: Composer, request: Request, console: bool) -> Iterator[tuple[Path, ValidRun]]:
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    if config.hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("a sweep is for fedexp.sweep, but the config sets hydra.mode=MULTIRUN; call sweep")
    valid_run = validate_config(composer, config, request.overrides)
    if console:
        _warn_of_words(config, request.overrides)
    with _run_folder(config, valid_run) as folder:
        logs.log_to(folder, console)
        yield folder, valid_run


def _warn_of_words(config: DictConfig, words: Sequence[str]) -> None:
    warn_of_repeated_keys(words)
    warn_of_unswept_keys(config, words)
    warn_of_unused_keys(config, words)


def _single(composer: Composer, request: Request, bounds: Sequence[Bound]) -> Path | None:
    point_list.refuse(request.overrides)
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    if config.hydra.mode == RunMode.MULTIRUN:
        composer.composed = None
        return command.run(composer, request, job, bounds)
    valid_run = validate_config(composer, config, request.overrides)
    refuse_bounds(bounds, [valid_run.exp.metric_entries])
    if rank():
        _follow(valid_run.config, valid_run.exp)
        return None
    _warn_of_words(config, request.overrides)
    with _run_folder(config, valid_run) as folder:
        composer.run(request.config_name, partial(job, valid_run=valid_run), request.overrides)
    return folder


@contextmanager
def _run_folder(config: DictConfig, valid_run: ValidRun) -> Iterator[Path]:
    """Claims the folder of a run and writes its config there, which Hydra itself would write in place and unsynced."""
    with folders.provisional_folder(config.hydra.run) as folder:
        config.hydra.run.dir = str(folder)
        saved_config.save(folder, config, valid_run.config)
        config.hydra.output_subdir = None
        yield folder


def _follow(config: dict[str, Any], exp: Any = None) -> None:
    """Takes part in a run; `exp` is the experiment of the config where it was built already."""
    from fedexp.run.run import follow

    logs.silence()
    with exit_on_error(None):
        follow(config, exp)


def _show_config(composer: Composer, request: Request, arguments: Namespace) -> None:
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    shown_keys = dict(walk(raw_config(config)))
    if arguments.package not in (None, "_global_", *shown_keys):
        raise ConfigError(
            explain_unknown_key(arguments.package, [key for key in shown_keys if key.partition(".")[0] != "hydra"])
        )
    if arguments.package and shown_keys.get(arguments.package, "") is None:
        print_text("null\n")
        return
    with composer.explain_errors(request.config_name, request.overrides):
        composer.hydra.show_cfg(
            request.config_name, request.overrides, arguments.cfg, arguments.package, arguments.resolve
        )
    if arguments.cfg != "hydra":
        refuse_replaced_parts(config)
        build_parts(resolve_config(config))  # mistakes of each part are told too; no data is asked for
