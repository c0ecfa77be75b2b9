"""The trials of one method, shared by all processes that work on the search.

Optuna keeps all of them in one journal file. A trial belongs to the process that holds the lock of its folder; if that
process has died, another one continues the trial where its run stopped. Every trial draws from streams of its own, so
a search by one process gives the same trials however often it is killed.
"""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError, first_line
from fedexp.files.atomic import display_path
from fedexp.files.locks import file_lock
from fedexp.files.open_folders import make_folder
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.run import folders
from fedexp.sweep.launchers.contract import import_optional

JOURNAL, LOCK = "study.journal", "study.journal.lock"
_MAX_NAME = 100  # characters of a folder's name


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How many trials a method has, the seed of their draws, whether poor ones may be stopped early, and by what."""

    trials: int
    seed: int = 0
    pruning: bool = True
    metric: str = "accuracy"


class JournalLock:
    """Keeps other processes from the journal; Optuna's own lock is a link that a killed process leaves behind."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()

    def acquire(self) -> bool:
        """Waits until nobody else has it, and cuts off the line that a killed process did not finish; True."""
        self._stack.enter_context(file_lock(self._folder / LOCK))
        truncate_to_lines(self._folder / JOURNAL)
        return True

    def release(self) -> None:
        """Gives it back."""
        self._stack.close()


class MethodTrials:
    """One method's trials in the folder of a search."""

    def __init__(self, folder: Path, method: tuple[str, ...], budget: Budget) -> None:
        self.optuna = import_optional("optuna", "sweep", "fedexp search")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.method, self.budget, self.name = method, budget, " ".join(method) or "all"
        self.root, self.folder = folder, folder / folder_name(method)
        try:
            self.study = self._open_study()
        except Exception as error:  # of any kind: Optuna believes what is in the file
            raise ConfigError(
                f"{display_path(folder / JOURNAL)} must be as fedexp search wrote it, but it cannot be read "
                f"({type(error).__name__}: {first_line(error)}); restore it, or search in another folder"
            ) from error

    def _open_study(self) -> Any:
        storages, journal = self.optuna.storages, str(self.root / JOURNAL)
        backend = storages.journal.JournalFileBackend(journal, JournalLock(self.root))
        study = self.optuna.create_study(
            study_name=self.name,
            storage=storages.JournalStorage(backend),
            direction="maximize" if higher_is_better(self.budget.metric) else "minimize",
            load_if_exists=True,
            sampler=self._sampler(0),
        )
        for trial in study.get_trials(deepcopy=False):
            if trial.state == self.optuna.trial.TrialState.COMPLETE and not math.isfinite(trial.value):
                raise ValueError(f"trial {trial.number} has no score")
        return study

    @contextmanager
    def next_trial(self) -> Iterator[Any]:
        """Yields a trial to work on, locked as long as the block lasts; None if none is left."""
        with ExitStack() as lock_stack:
            with file_lock(self.root / ".lock"):  # else a method would get more trials than its budget
                trial = self._abandoned_trial(lock_stack) or self._new_trial(lock_stack)
            yield trial

    def trials(self) -> list[Any]:
        """All trials so far, by number."""
        return self.study.get_trials(deepcopy=False)

    def trial_folder(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / str(number)

    def pruner(self, config: dict[str, Any]) -> Any:
        """Prunes a trial whose best look is worse than the median of earlier ones, after a quarter of its rounds.

        Earlier ones are those that came to their end, five at least; so Optuna's MedianPruner has it. Nothing is pruned
        where looks follow the clock: trials whose rounds last differently long have none in common.
        """
        if not self.budget.pruning or config["evaluation"]["every_s"] is not None:
            return self.optuna.pruners.NopPruner()
        from fedexp.search.sampler import RANDOM_TRIALS

        return self.optuna.pruners.MedianPruner(n_startup_trials=RANDOM_TRIALS, n_warmup_steps=config["rounds"] // 4)

    def _abandoned_trial(self, lock_stack: ExitStack) -> Any:
        """A running trial whose process has ended, now locked by this one; None if there is none."""
        states = self.optuna.trial.TrialState
        for frozen in self.trials():
            if frozen.state == states.RUNNING and self._lock_trial(frozen.number, lock_stack):
                self.study.sampler = self._sampler(frozen.number)  # it may have died before its values were drawn
                return self.optuna.trial.Trial(self.study, frozen._trial_id)
        return None

    def _new_trial(self, lock_stack: ExitStack) -> Any:
        count = len(self.trials())
        if count >= self.budget.trials:
            return None
        self.study.sampler = self._sampler(count)
        trial = self.study.ask()
        if not self._lock_trial(trial.number, lock_stack):
            raise ConfigError(f"{self.trial_folder(trial.number)} is held by another process; wait for it, or end it")
        return trial

    def _lock_trial(self, number: int, lock_stack: ExitStack) -> bool:
        folder = self.trial_folder(number)
        make_folder(folder)
        try:
            lock_stack.enter_context(folders.lock_folder(folder, patience_s=0.0))
        except ConfigError:
            return False
        return True

    def _sampler(self, number: int) -> Any:
        from fedexp.search.sampler import SharedStartSampler  # it brings Optuna

        return SharedStartSampler(self.budget.seed, self.name, number)


def truncate_to_lines(path: Path) -> None:
    """Cuts off what stands behind the last line break of a file; nobody else may be writing it."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read(1) not in (b"", b"\n"):  # rarely: the rest is read only then, since each look appends a line
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def folder_name(method: tuple[str, ...]) -> str:
    """The folder name of a method; a long one is cut, with a digest to keep it unique."""
    text = ",".join(method).replace("/", ".") or "all"
    if len(text) <= _MAX_NAME:
        return text
    return f"{text[:_MAX_NAME]}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
