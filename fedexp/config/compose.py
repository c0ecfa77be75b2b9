"""Composes the overrides of `fedexp run` into resolved, checked configs, before anything is loaded or made."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from hydra import compose, initialize_config_dir
from hydra._internal.callbacks import Callbacks  # run_job and sweepers must be given them; no other name leads there
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import configure_log, run_job
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedexp.config import hydra_errors, launchers, one_at_a_time, roles
from fedexp.config.compositions import PointComposer
from fedexp.config.resolvers import register_resolvers
from fedexp.core.errors import ConfigError
from fedexp.core.nested import walk
from fedexp.files.url_credentials import keep_in_environment, without_passwords


@dataclass
class Request:
    """What was asked on the command line: the overrides, and where configs come from."""

    conf: Path
    overrides: list[str]
    config_name: str = "config"
    config_dir: Path | None = None
    typed: bool = True  # by the user; else a folder says it


class Composer:
    """Composes a config once by Hydra, with readable errors; the composed config may be corrected before use."""

    def __init__(self, *, typed: bool) -> None:
        self.typed = typed
        self.hydra: Any = GlobalHydra.instance().hydra  # its show_cfg and show_info compose by themselves
        self.config_loader = GlobalHydra.instance().config_loader()
        self.composed: DictConfig | None = None
        self.points = PointComposer(self.config_loader)

    def compose_config(
        self, config_name: str, overrides: list[str], run_mode: RunMode, with_log_configuration: bool = False
    ) -> DictConfig:
        """The config with Hydra's node; a second call returns the config composed first."""
        if self.composed is None:
            with self.explain_errors(config_name, overrides), hydra_errors.refuse_missing_folders():
                if run_mode == RunMode.RUN:
                    self.composed = compose(config_name, overrides, return_hydra_config=True)
                else:
                    self.composed = self.config_loader.load_configuration(config_name, overrides, run_mode)
                hydra_errors.refuse_invalid_verbosity(self.composed.hydra)
            if self.typed:
                with suppress(*hydra_errors.COMPOSE_ERRORS):  # what is wrong with the tracker is told where it is built
                    keep_in_environment(OmegaConf.select(self.composed, "tracker.uri"))
        if with_log_configuration:
            with hydra_errors.explain_logging_errors():
                configure_log(self.composed.hydra.hydra_logging, self.composed.hydra.verbose)
        return self.composed

    def run(
        self, config_name: str, task_function: TaskFunction, overrides: list[str], with_log_configuration: bool = True
    ) -> None:
        """Runs the task once, with logging set up by the config."""
        config = self.compose_config(config_name, overrides, RunMode.RUN, with_log_configuration)
        config.hydra.mode = RunMode.RUN
        context = self._context(config)
        context.callbacks.on_run_start(config=config, config_name=config_name)
        with hydra_errors.explain_logging_errors():
            job_result = run_job(task_function, config, "hydra.run.dir", None, context, with_log_configuration)
        context.callbacks.on_run_end(config=config, config_name=config_name, job_return=job_result)
        _ = job_result.return_value  # raises what ended the task

    def multirun(self, config_name: str, task_function: TaskFunction, points: list[list[str]]) -> None:
        """Sweeps as Hydra does, for a sweeper or launcher from a third-party plugin."""
        config = cast(DictConfig, self.composed)
        context = self._context(config)
        context.callbacks.on_multirun_start(config=config, config_name=config_name)
        arguments: dict[str, Any] = {"hydra_context": context, "task_function": task_function, "config": config}
        if config.hydra.sweeper.get("_target_") == one_at_a_time.NAME:  # Hydra looks among its plugins only
            job_results = Plugins.instance().instantiate_launcher(**arguments).launch(points, initial_job_idx=0)
            _ = [job_result.return_value for job_result in job_results]  # raises what ended a point
        else:
            words = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
            Plugins.instance().instantiate_sweeper(**arguments).sweep(cast(list[str], words))
        context.callbacks.on_multirun_end(config=config, config_name=config_name)

    def _context(self, config: DictConfig) -> HydraContext:
        return HydraContext(self.config_loader, Callbacks(config))

    @contextmanager
    def explain_errors(self, config_name: str | None, overrides: Sequence[str]) -> Iterator[None]:
        """Turns Hydra's exceptions into a ConfigError of one line."""
        try:
            yield
        except ConfigError:
            raise
        except hydra_errors.COMPOSE_ERRORS as error:
            raise hydra_errors.explain(error, overrides, lambda: self.known_keys(config_name, overrides)) from error

    def known_keys(self, config_name: str | None, overrides: Sequence[str]) -> list[str]:
        """All keys and groups for the chosen options; Hydra's own keys only if an override names one."""
        groups = self.points.groups
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        choices = [
            cast(str, override.input_line)
            for override in parsed
            if is_choice(override, groups) or "/" in override.key_or_group
        ]
        try:
            config = self.config_loader.load_configuration(config_name, choices, RunMode.MULTIRUN)
        except hydra_errors.COMPOSE_ERRORS:  # a choice is what was wrong
            config = self.config_loader.load_configuration(config_name, [], RunMode.MULTIRUN)
        container = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
        if not any(override.key_or_group.startswith("hydra.") for override in parsed):
            del container["hydra"]
        keys = (key for key, _ in walk(container) if key.rpartition(".")[2] != "_target_")
        return sorted({*keys, *(group for group in groups if group != "hydra")})

    def options(self, group: str) -> list[str]:
        """The names to put after `group=`."""
        return self.config_loader.get_group_options(group, ObjectType.CONFIG)


class UserOptions(SearchPathPlugin):
    """Adds options from elsewhere to the search path that Hydra is making: those of installed groups, the user's own.

    Hydra makes the object by itself.
    """

    folder: ClassVar[Path | None] = None

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in roles.option_folders():
            search_path.append(provider=roles.ENTRY_POINTS, path=f"file://{folder.resolve()}")
        if self.folder is not None:
            search_path.append(provider="command-line", path=f"file://{self.folder.resolve()}")


def is_choice(override: Override, groups: Collection[str]) -> bool:
    """Whether an override chooses an option of a group."""
    return override.key_or_group in groups and override.package is None


def make_composer(request: Request) -> Composer:
    """Makes the composer, with the user's own config folder in front of ours."""
    if request.config_dir is not None and not request.config_dir.is_dir():
        raise ConfigError(f"--config-dir must be a folder, got {request.config_dir}")
    GlobalHydra.instance().clear()
    register_resolvers()
    one_at_a_time.register()
    request.overrides = roles.add_installed_roles(request.overrides)
    Plugins.instance().register(UserOptions)
    UserOptions.folder = request.config_dir
    try:
        initialize_config_dir(str(request.conf), job_name="fedexp", version_base="1.3")
    finally:
        UserOptions.folder = None
    launchers.register()
    composer = Composer(typed=request.typed)
    with composer.explain_errors(request.config_name, request.overrides):
        _refuse_invalid_choices(composer, request.overrides)
    return composer


def _refuse_invalid_choices(composer: Composer, overrides: list[str]) -> None:
    """Refuses a number, a list or nothing as an option; Hydra's own message does not name the group."""
    groups = composer.points.groups
    for override in OverridesParser.create().parse_overrides(overrides):
        if not override.key_or_group:
            raise ConfigError(f"cannot read {override.input_line!r}; write key=value or group=option")
        is_single_choice = is_choice(override, groups) and not (override.is_delete() or override.is_sweep_override())
        if is_single_choice and not isinstance(override.value(), str):
            wanted, value = ", ".join(composer.options(override.key_or_group)), override.get_value_element_as_str()
            raise ConfigError(f"{override.key_or_group} must be one of {wanted}, got {value}")


def resolve_config(config: DictConfig) -> dict[str, Any]:
    """The config without Hydra's node, interpolations resolved, passwords of addresses out.

    This is what is run, and saved with the state.
    """
    container = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return without_passwords(OmegaConf.to_container(container, resolve=True))


def comparable_config(config: DictConfig) -> dict[str, Any]:
    """A config to look at before it is checked: resolved, or unresolved where it cannot be resolved."""
    try:
        return resolve_config(config)
    except hydra_errors.COMPOSE_ERRORS:
        return raw_config(config)


def raw_config(config: DictConfig) -> dict[str, Any]:
    """An unresolved config as plain values."""
    return cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
