"""`fedexp run` and `fedexp resume`: checked first, then handed to Hydra, in a folder of its own."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from fedexp.config import noted
from fedexp.config.compose import Composer, Request, plain, read_config, start, unresolved
from fedexp.config.hydra_errors import searched, unknown_key
from fedexp.config.location import conf_dir
from fedexp.config.trust import NOBODY, Trust
from fedexp.core import logs
from fedexp.core.errors import ConfigError
from fedexp.core.exits import ending
from fedexp.core.files import shown
from fedexp.core.nested import walk
from fedexp.core.torchrun import rank
from fedexp.run import folders, retrack
from fedexp.run.checked import checked
from fedexp.sweep import multirun
from fedexp.sweep.points import Point


def launch(flags: Namespace) -> int:
    """Runs what the arguments of `fedexp run` ask for: one run, a sweep, or a look at the config."""
    request = Request(conf_dir(), flags.overrides, flags.config_name, flags.config_dir)
    try:
        with logs.kept():
            composer = start(request)
            if flags.cfg is not None:
                _show(composer, request, flags)
            elif flags.info is not None:
                with composer.readable(request.config_name, request.overrides), searched():
                    composer.hydra.show_info(flags.info, request.config_name, request.overrides)
            elif flags.multirun or "hydra.mode=MULTIRUN" in flags.overrides:
                multirun.run(composer, request, job)
            else:
                _single(composer, request)
    finally:
        GlobalHydra.instance().clear()
    return 0


def resume(folder: Path, words: Sequence[str] = (), trust: Trust = NOBODY) -> int:
    """Continues the run of a folder, or the sweep."""
    try:
        node = retrack.chosen([word for word in words if word.startswith(retrack.WORDS)], trust.config_dir)
        trust = retrack.trusting(trust, node)
        more = [word for word in words if not word.startswith(retrack.WORDS)]
        if folders.is_sweep(folder):
            with logs.kept():
                multirun.resume(folder, more, node, trust)
            return 0
    finally:
        GlobalHydra.instance().clear()
    if more:
        raise ConfigError(f"a run goes on as it began, but for tracker=...; start a new one to change {more[0]}")
    config = read_config(folder, trust)
    retrack.put(folder, node)
    from fedexp.run.run import resume

    with logs.kept():
        if rank():
            _follow(config)
            return 0
        with ending(folder):
            logs.log_to(folder)
            resume(folder, trust)
    return 0


def job(config: DictConfig) -> None:
    """What Hydra calls for a run and for each point of a sweep."""
    hydra = HydraConfig.get()
    folder = Path(shown(Path(hydra.runtime.output_dir)))
    with ending(folder, _point(hydra)):
        from fedexp.run.run import run

        run(plain(config), folder)


def single(composer: Composer, request: Request, console: bool) -> Path:
    """Executes one run for a script, whose logging Hydra must not replace, and returns its folder."""
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    if config.hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("a sweep is for the command line, but the config sets hydra.mode=MULTIRUN; use fedexp run -m")
    checked(composer, config, request.overrides)
    with _lent(config) as folder:
        logs.log_to(folder, console)
        composer.run(request.config_name, job, request.overrides, with_log_configuration=False)
    return folder.absolute()


def _single(composer: Composer, request: Request) -> None:
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    if config.hydra.mode == RunMode.MULTIRUN:
        composer.composed = None
        multirun.run(composer, request, job)
        return
    found = checked(composer, config, request.overrides)
    if rank():
        _follow(found)
        return
    with _lent(config):
        composer.run(request.config_name, job, request.overrides)


@contextmanager
def _lent(config: DictConfig) -> Iterator[Path]:
    """Claims the folder of a run and writes its config there, which Hydra itself would write in place and unsynced."""
    with folders.lent(config.hydra.run) as folder:
        config.hydra.run.dir = str(folder)
        noted.note(folder, config)
        config.hydra.output_subdir = None
        yield folder


def _follow(config: dict[str, Any]) -> None:
    from fedexp.run.run import follow

    logs.silence()
    with ending(None):
        follow(config)


def _point(hydra: Any) -> str:
    if hydra.mode != RunMode.MULTIRUN:
        return ""
    return str(Point(hydra.job.num, list(hydra.overrides.task)))


def _show(composer: Composer, request: Request, flags: Namespace) -> None:
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    shown_keys = dict(walk(unresolved(config)))
    if flags.package not in (None, "_global_", *shown_keys):
        raise ConfigError(unknown_key(flags.package, [key for key in shown_keys if key.partition(".")[0] != "hydra"]))
    if flags.package and shown_keys.get(flags.package, "") is None:
        sys.stdout.write("null\n")
        return
    with composer.readable(request.config_name, request.overrides):
        composer.hydra.show_cfg(request.config_name, request.overrides, flags.cfg, flags.package, flags.resolve)
