"""The run to be planned: composed and checked like `fedexp run`; of a sweep its first point."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from fedexp.config.compose import Composer, Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.run.validate import ValidRun, validate_config
from fedexp.sweep import point_list
from fedexp.sweep.points import check_points, validate_point
from fedexp.sweep.points import compose as compose_sweep
from fedexp.sweep.repeated_keys import warn_of_repeated_keys
from fedexp.sweep.unswept_keys import warn_of_unswept_keys
from fedexp.sweep.unused_keys import warn_of_unused_keys


@dataclass(frozen=True)
class PlanRequest:
    """A run, or the first of several points: `point` holds the overrides that vary."""

    run: ValidRun
    points: int = 1
    point: str = ""


def compose(flags: Namespace) -> PlanRequest:
    """Composes and checks what the command line asks for, without making a folder."""
    config_dir = Path(flags.config_dir) if flags.config_dir else None
    request = Request(conf_dir(), flags.overrides, flags.config_name, config_dir)
    try:
        composer = make_composer(request)
        planned = _compose(composer, request, multirun=flags.multirun)
        warn_of_repeated_keys(request.overrides)
        return planned
    finally:
        GlobalHydra.instance().clear()


def _compose(composer: Composer, request: Request, *, multirun: bool) -> PlanRequest:
    if not multirun and "hydra.mode=MULTIRUN" not in request.overrides:
        point_list.refuse(request.overrides)
        config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
        if config.hydra.mode != RunMode.MULTIRUN:
            warn_of_unswept_keys(config, request.overrides)
            warn_of_unused_keys(config, request.overrides)
            return PlanRequest(validate_config(composer, config, request.overrides))
        composer.composed = None
    return _first_point(composer, request)


def _first_point(composer: Composer, request: Request) -> PlanRequest:
    config = compose_sweep(composer, request)
    points = check_points(composer, config)
    if not points:
        raise ConfigError(
            "a sweep is planned by its first point, but hydra/sweeper decides on points as it goes; plan one point"
        )
    first = points[0]
    varied = [word for word in first.overrides if any(word not in point.overrides for point in points)]
    return PlanRequest(validate_point(composer, config, first)[1], len(points), " ".join(varied))
