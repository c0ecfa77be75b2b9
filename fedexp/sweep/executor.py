"""Runs the missing points of a sweep: creates their folders, gives them to the launcher, reports how each ended."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from hydra.core.utils import configure_log
from omegaconf import DictConfig, OmegaConf

from fedexp.config import saved_config
from fedexp.config.compose import Composer, comparable_config
from fedexp.config.launchers import BASIC
from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.join_first import join_first
from fedexp.core.part import build
from fedexp.files import summary_json
from fedexp.files.atomic import display_path, shell_path
from fedexp.files.failure import TRACEBACK, read_failure
from fedexp.process import logs
from fedexp.process.exits import FAILURE, USAGE_ERROR
from fedexp.process.terminal import format_duration
from fedexp.run import addresses, folders
from fedexp.run.change_tracker import write_tracker
from fedexp.sweep.changed_points import refuse_changed
from fedexp.sweep.launchers.contract import Basic, Launcher, PointEnd
from fedexp.sweep.points import Point, common_words, compose_point, resolve_point
from fedexp.sweep.run_point import run_points

NUMBER = "${hydra.job.num}"
SHOWN = 5  # failed points that the last line names
NO_TRACKER = "fedexp.parts.tracker.contract.Tracker"

log = logging.getLogger(__name__)


@dataclass
class Sweep:
    """The points of one sweep, its folder, and how far it is."""

    composer: Composer
    config: DictConfig
    points: list[Point]
    launcher: Launcher
    tracker: dict[str, Any] | None = None
    trust: Trust = NO_TRUST
    points_by_folder: dict[Path, Point] = field(default_factory=dict)
    failed: list[PointEnd] = field(default_factory=list)
    done: set[int] = field(default_factory=set)  # numbers of the points with nothing left to do
    running: int = 0  # points that are running
    peak_running: int = 1  # the most that ran at once
    durations: list[float] = field(default_factory=list)  # seconds of the points that ended well

    @cached_property
    def common_words(self) -> set[str]:
        """The overrides of all points, which tell none from another."""
        return common_words(self.points)

    def execute(self) -> list[PointEnd]:
        """Executes what is missing or unfinished and returns the points that failed.

        Raises:
            ConfigError: a numbered folder holds another point, or was changed after its end.
        """
        sweep = Path(self.config.hydra.sweep.dir)
        if self._has_numbered_folders():  # else points have to be composed first
            for point in self.points:
                refuse_changed(sweep / str(point.number), point.overrides, partial(self._compose, point))
            self.done = {point.number for point in self.points if folders.is_finished(sweep / str(point.number))}
        with logs.notes_once():
            for point, end in run_points(self.points, self._prepare, self.launcher, self.launcher.aloud, self.trust):
                self.done.add(point.number)
                self.running -= 1
                self.durations += [] if end.code else [end.seconds]
                self.failed += [end] if end.code else []
                self._tell(point, end)
        return self.failed

    def demand_addresses(self) -> None:
        """Refuses another's sweep before any point begins, if its trackers would send to unknown addresses.

        Known addresses are passed on to the points' processes. Points whose folders do not have their numbers are
        checked when they begin.
        """
        sweep, known_addresses = Path(self.config.hydra.sweep.dir), set(self.trust.addresses)
        for node in self._trackers(sweep):
            addresses.refuse_unknown({"tracker": node}, sweep / "0", self.trust)
            known_addresses.update(build(node, "tracker").addresses(sweep / "0"))
        self.trust = replace(self.trust, addresses=tuple(sorted(known_addresses)))

    def _trackers(self, sweep: Path) -> list[dict[str, Any]]:
        """The distinct trackers of all points: the one that is named now, else those in the folders or the config."""
        if self.tracker is not None:
            return [self.tracker]
        begun_folders = [sweep / str(point.number) for point in self.points] if self._has_numbered_folders() else []
        begun_folders = [point_folder for point_folder in begun_folders if saved_config.exists(point_folder)]
        configs = [read_config(point_folder, self.trust) for point_folder in begun_folders]
        nodes = [config.get("tracker") for config in configs if _sends_anything(config)]
        if len(begun_folders) < len(self.points):
            nodes.append(comparable_config(self.config).get("tracker"))
        return [node for number, node in enumerate(nodes) if node and node not in nodes[:number]]

    def _prepare(self, point: Point) -> Path | None:
        """Creates the folder of a point; None if it is finished, or cannot be run."""
        try:
            folder = self._point_folder(point)
            write_tracker(folder, self.tracker)
            finished = folders.is_finished(folder)
            if finished and _sends_anything({"tracker": self.tracker} if self.tracker else self.config):
                send_missing(folder, self.trust)
        except ConfigError as error:
            log.error("failed: %s%s", point, error)
            self.failed.append(PointEnd(Path(self.config.hydra.sweep.dir), USAGE_ERROR, str(error)))
            self.done.add(point.number)
            return None
        self.points_by_folder[folder] = point
        if finished:
            self.done.add(point.number)
            if reason := read_failure(folder):  # it came to its end without a model of use, and would again
                log.error("failed: %s%s", point, reason)
                self.failed.append(PointEnd(folder, FAILURE, reason))
            return None
        self.running += 1
        self.peak_running = max(self.peak_running, self.running)
        return folder

    def _point_folder(self, point: Point) -> Path:
        """The folder of a point, with the point's config in it.

        A point whose folder has its number need not be composed to find it. With other names it must: folder 1 may be
        seed 1.
        """
        sweep = Path(self.config.hydra.sweep.dir).absolute()
        numbered_folder = sweep / str(point.number)
        if numbered_folder.exists() and not numbered_folder.is_dir():
            raise ConfigError(
                f"{display_path(numbered_folder)} must be the folder of the point, but is a file; remove it"
            )
        if self._has_numbered_folders() and saved_config.exists(numbered_folder):
            return numbered_folder
        point_config = compose_point(self.composer, self.config, point)
        folder = (sweep / str(point_config.hydra.sweep.subdir)).absolute()
        if not folder.resolve().is_relative_to(sweep.resolve()):
            raise ConfigError(
                f"hydra.sweep.subdir must lead below {display_path(sweep)}, got {point_config.hydra.sweep.subdir}"
            )
        self._refuse_shared(folder)
        refuse_changed(folder, point.overrides, lambda: resolve_point(self.composer, point_config, point))
        if not saved_config.exists(folder):
            saved_config.save(folder, point_config, resolve_point(self.composer, point_config, point))
        return folder

    def _compose(self, point: Point) -> dict[str, Any]:
        return resolve_point(self.composer, compose_point(self.composer, self.config, point), point)

    def _refuse_shared(self, folder: Path) -> None:
        if folder in self.points_by_folder:
            number = self.points_by_folder[folder].number
            raise ConfigError(
                f"its folder is that of point {number}, {display_path(folder)}; hydra.sweep.subdir must differ for "
                "every point"
            )

    def _has_numbered_folders(self) -> bool:
        sweep_config = cast(dict[str, Any], OmegaConf.to_container(self.config.hydra.sweep, resolve=False))
        return sweep_config["subdir"] == NUMBER

    def _tell(self, point: Point, end: PointEnd) -> None:
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        if end.code:
            log.error("failed: %s%s", point, end.message)
        words, result = point.words_without(self.common_words), "" if end.code else _final_metric(end.folder)
        took = "failed" if end.code else format_duration(end.seconds)
        facts = ", ".join(filter(None, (words, result, took)))
        log.info("%d of %d: %s%s", point.number + 1, len(self.points), facts, self._describe_remaining())

    def _describe_remaining(self) -> str:
        """How many points remain, and how long they will take at the mean duration so far."""
        remaining = len(self.points) - len(self.done)
        if not self.durations or not remaining:
            return f"; {remaining} left" if remaining else ""
        mean_seconds = sum(self.durations) / len(self.durations)
        return f"; {remaining} left, about {format_duration(mean_seconds * remaining / self.peak_running)}"


def _final_metric(folder: Path) -> str:
    summary = summary_json.read(folder) or {}
    name = summary_json.main_metric(summary)
    value = summary.get(f"final_{name}")
    return "" if value is None else f"{name} {value:.4f}"


def _sends_anything(config: Mapping[str, Any] | DictConfig) -> bool:
    """Whether a config has a tracker that sends anything."""
    return (config.get("tracker") or {}).get("_target_", NO_TRACKER) != NO_TRACKER


def send_missing(folder: Path, trust: Trust) -> None:
    """Sends what the tracker lacks of a finished point."""
    from fedexp.run.run import send

    config = read_config(folder, trust)
    addresses.refuse_unknown(config, folder, trust)
    send(config, folder)


def build_launcher(config: DictConfig) -> Launcher | None:
    """Builds the launcher that was chosen; None if it is somebody else's plugin.

    Raises:
        ConfigError: it cannot work here.
    """
    node = OmegaConf.to_container(config.hydra.launcher, resolve=True)
    assert isinstance(node, Mapping)
    if node.get("_target_") == BASIC:
        return Basic()
    if not str(node.get("_target_")).startswith("fedexp."):
        return None
    launcher = build(node, "hydra.launcher")
    launcher.refuse()
    return launcher


def failure_message(failed: list[PointEnd], points: int, folder: Path) -> str:
    """The error message of a sweep with failed points."""
    named = join_first([display_path(outcome.folder) for outcome in failed], SHOWN)
    has_files = any((outcome.folder / TRACEBACK).is_file() for outcome in failed)
    reasons = f"all reasons are above and in their {TRACEBACK}" if has_files else "all reasons are above"
    message = f"{len(failed)} of {points} points failed: {named}; the first: {failed[0].message}; {reasons}"
    finished_count = sum(folders.is_finished(outcome.folder) for outcome in failed)
    if finished_count < len(failed):
        message += (
            f"; to try {'them' if not finished_count else 'those that did not end'} again: fedexp resume "
            f"{shell_path(folder)}"
        )
    return message
