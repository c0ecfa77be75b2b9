"""MLflow: a server, or an SQLite file that needs none. A sweep is a parent run, its points are the children.

MLflow stores a value twice if it is logged twice at one step. So the last number of a round is `round`, and a new
connection asks for its history and sends only the rounds that are missing. Rounds replayed after a crash have the same
numbers (timings aside), so those that had arrived stay as they are. The parent ends with the point that ends last.
"""

import getpass
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedexp.config.trust import remember_address, was_address_used
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import atomic_path, remove_leftovers
from fedexp.files.url_credentials import has_ambiguous_at, with_password, without_password
from fedexp.parts.tracker import memo
from fedexp.parts.tracker.contract import Order, Receiver, SendingTracker
from fedexp.parts.tracker.lines import Line, sanitise_name, text
from fedexp.parts.tracker.memo import SyncState

TOKEN = "fedexp.token"
METRICS, PARAMETERS, LONGEST_PARAMETER = 1000, 100, 6000  # of one request; characters
SQLITE = "sqlite:///"


class MLflow(SendingTracker):
    """A tracking server, or a file."""

    package = "mlflow"

    uri: str | None = None
    experiment: str = "fedexp"

    def check(self) -> None:
        if self.uri is not None and has_ambiguous_at(self.uri):
            raise ConfigError(
                "MLflow.uri must have no @ behind the first / of its host and path, as a password might end there; "
                "write a / of a password as %2F, and an @ of a path as %40"
            )

    @property
    def named_addresses(self) -> tuple[str, ...]:
        return () if self.uri is None else (without_password(resolve_uri(self.uri, Path())),)

    def addresses(self, folder: Path) -> tuple[str, ...]:
        """An existing database counts as well: it determines where the files of its runs go."""
        address = destination(self.uri, memo.load(folder, self.package), folder.absolute())
        exists = self.uri is not None or Path(address.removeprefix(SQLITE)).exists()
        return (address,) if exists else ()

    def open(self, order: Order, state: SyncState) -> "MlflowRun":
        _set_quiet_defaults(self.patience_s)
        return MlflowRun(self, order, state)


def _set_quiet_defaults(patience_s: float) -> None:
    """Changes MLflow's defaults, which are to wait for minutes, draw bars and count users; the user's settings win."""
    defaults = {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, round(patience_s / 2))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def resolve_uri(uri: str | None, folder: Path) -> str:
    """The full URI; without one, mlflow.db in the `outputs` above the run, else in its search's or parent folder."""
    if uri is None:
        outputs = [parent for parent in folder.parents if parent.name == "outputs"]
        searches = [parent for parent in folder.parents if (parent / "search.yaml").exists()]
        return f"{SQLITE}{[*outputs, *searches, folder.parent][0] / 'mlflow.db'}"
    if uri.startswith(SQLITE):
        return f"{SQLITE}{Path(uri.removeprefix(SQLITE)).absolute()}"
    return uri


def destination(uri: str | None, state: SyncState, folder: Path) -> str:
    """Where a run is sent: to its URI, else where it was sent before, if this user ever sent anything there."""
    before = state.place if state.place and was_address_used(state.place) else None
    return without_password(resolve_uri(uri or before, folder))


def artifact_location(uri: str) -> str | None:
    """The folder of artifacts if the numbers are in an SQLite file; None for a server, which decides itself."""
    if not uri.startswith(SQLITE):
        return None
    return (Path(uri.removeprefix(SQLITE)).parent / "mlartifacts").as_uri()


def create_database(database: Path, patience_s: float, show_progress: Callable[[], object]) -> None:
    """Creates the database if there is none; atomically, because MLflow refuses an unfinished one.

    That takes far more than a thousand statements; before each of them `show_progress` is called, and once MLflow is
    imported.
    """
    from mlflow.tracking import MlflowClient

    show_progress()
    database.parent.mkdir(parents=True, exist_ok=True)
    with memo.lock_tracker(database.parent, patience_s):
        remove_leftovers(database.parent, lambda name: name == database.name)
        if not database.exists():
            with atomic_path(database) as partial, _before_statements(show_progress):
                MlflowClient(tracking_uri=f"{SQLITE}{partial}").search_experiments(max_results=1)


@contextmanager
def _before_statements(call: Callable[[], object]) -> Iterator[None]:
    """Calls a function before every statement that a database is sent."""
    from sqlalchemy import Engine, event

    def listener(*_: object) -> None:
        call()

    event.listen(Engine, "before_cursor_execute", listener)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", listener)


def run_title(folder: Path) -> str:
    """A run's name: its folder below `outputs`, else the folder's own."""
    folders = folder.parts
    return "/".join(folders[len(folders) - folders[::-1].index("outputs") :]) if "outputs" in folders else folder.name


class MlflowRun(Receiver):
    """A run of a tracking server."""

    def __init__(self, tracker: MLflow, order: Order, state: SyncState) -> None:
        from mlflow.tracking import MlflowClient  # takes a second

        self.tracker, self.order = tracker, order
        self.uri = destination(tracker.uri, state, order.folder)
        remember_address(self.uri)
        if self.uri.startswith(SQLITE):
            database = Path(self.uri.removeprefix(SQLITE))
            create_database(database, tracker.patience_s, lambda: memo.show_progress(order.folder))
        self.client = MlflowClient(tracking_uri=with_password(self.uri))
        self.state, self.parent = state, SyncState()

    def begin(self) -> SyncState:
        experiment, sweep = self._experiment_id(), self.order.folder.parent
        if (sweep / "multirun.yaml").exists():
            self.parent = self._find_or_create_parent(experiment, sweep)
        tags = {**self.order.tags, **({"mlflow.parentRunId": self.parent.run} if self.parent.run else {})}
        self.state = self._find_or_create_run(experiment, self.state, run_title(self.order.folder), tags)
        self.client.update_run(self.state.run, status="RUNNING")
        self._send_parameters()
        steps = [entry.step for entry in self.client.get_metric_history(self.state.run, "round")]
        self.state = replace(self.state, round=max(steps, default=0))
        return self.state

    def send(self, lines: Sequence[Line]) -> None:
        metrics = [metric for line in lines for metric in self._metrics(line)]
        for start in range(0, len(metrics), METRICS):
            self.client.log_batch(self.state.run, metrics=metrics[start : start + METRICS])

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        if summary is not None:
            self.send([summary])
        for path in files:
            subfolder = path.parent.relative_to(self.order.folder).as_posix()
            self.client.log_artifact(self.state.run, str(path), None if subfolder == "." else subfolder.lstrip("."))
        self.client.set_terminated(self.state.run, status)
        if self.parent.run:
            self.client.set_terminated(self.parent.run, "FINISHED")

    def _metrics(self, line: Line) -> list[Any]:
        from mlflow.entities import Metric

        seconds = line.cells.get("host_s", line.cells.get("summary/host_s", 0.0))
        moment = self.state.began_ms + round(1000 * seconds)  # the same each time it is sent
        names = sorted(line.cells, key=lambda name: name == "round")  # the last one proves that the others arrived
        return [Metric(sanitise_name(name), line.cells[name], moment, line.round) for name in names]

    def _experiment_id(self) -> str:
        from mlflow.exceptions import MlflowException

        name = self.tracker.experiment
        if (experiment := self.client.get_experiment_by_name(name)) is not None:
            return experiment.experiment_id
        try:
            return self.client.create_experiment(name, artifact_location=artifact_location(self.uri))
        except MlflowException:  # another process was faster
            experiment = self.client.get_experiment_by_name(name)
            if experiment is None:
                raise
            return experiment.experiment_id

    def _find_or_create_parent(self, experiment: str, sweep: Path) -> SyncState:
        """Finds or creates the sweep's run; the first of its points creates it."""
        with memo.lock_tracker(sweep, self.tracker.patience_s):
            saved = memo.load(sweep, self.tracker.package)
            memo.save(sweep, saved)
            state = self._find_or_create_run(experiment, saved, run_title(sweep), self.order.tags)
            memo.save(sweep, state)
        return state

    def _find_or_create_run(self, experiment: str, state: SyncState, name: str, tags: dict[str, str]) -> SyncState:
        """Finds the run with this state's token; creates one if there is none."""
        runs = self.client.search_runs([experiment], f"tags.`{TOKEN}` = '{state.token}'", max_results=1)
        if runs:
            return replace(state, run=runs[0].info.run_id, place=self.uri)
        run_tags = {TOKEN: state.token, "mlflow.user": _user(), "mlflow.source.name": "fedexp", **tags}
        created = self.client.create_run(experiment, start_time=state.began_ms, tags=run_tags, run_name=name)
        return replace(state, run=created.info.run_id, place=self.uri, round=0, files=False)

    def _send_parameters(self) -> None:
        """Sends the parameters that MLflow lacks: it refuses changes, and some keys may differ in a resumed run."""
        from mlflow.entities import Param

        stored = self.client.get_run(self.state.run).data.params
        wanted = {sanitise_name(name): text(value, LONGEST_PARAMETER) for name, value in self.order.parameters.items()}
        missing = [Param(name, value) for name, value in wanted.items() if name not in stored]
        for start in range(0, len(missing), PARAMETERS):
            self.client.log_batch(self.state.run, params=missing[start : start + PARAMETERS])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without names
        return "unknown"
