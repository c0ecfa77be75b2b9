"""Hydra's logging settings: a readable error where Python's logging cannot apply them."""

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from omegaconf import DictConfig, ListConfig

from fedexp.core.errors import ConfigError, first_line

SETUP_ERRORS = (AssertionError, AttributeError, ImportError, KeyError, OSError, TypeError, ValueError)


def refuse_invalid_verbosity(hydra: DictConfig) -> None:
    """Refuses what `hydra.verbose` cannot be; Hydra would end with a bare assertion."""
    verbose = hydra.verbose
    names = list(verbose) if isinstance(verbose, ListConfig) else [verbose]
    if not (isinstance(verbose, bool) or (names and all(isinstance(name, str) for name in names))):
        raise ConfigError(
            f"hydra.verbose must be true, false, the name of a logger or a list of such names, got {verbose}"
        )


@contextmanager
def explain_logging_errors() -> Iterator[None]:
    """Turns an error in setting up logging into a ConfigError of one line; other errors pass."""
    try:
        yield
    except SETUP_ERRORS as error:
        if all(frame.f_code.co_name != "configure_log" for frame, _ in walk_tb(error.__traceback__)):
            raise
        why = first_line(error.__cause__ or error)
        raise ConfigError(
            f"logging cannot be set up as hydra.hydra_logging and hydra.job_logging say: {why}; leave them as they are"
        ) from error
