"""Run an experiment; with -m every combination of values."""

from argparse import Namespace
from collections.abc import Sequence

from fedexp.commands import listing, offered
from fedexp.commands.parsing import Parser
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError

TOPICS = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def parser() -> Parser:
    """Declares Hydra's own flags, less those for the authors of apps."""
    made = Parser(
        "run [group=option ...] [key=value ...] [-m] [--cfg job]", __doc__, lambda: listing.run_help(conf_dir())
    )
    composing(made)
    made.flag("show the composed config instead of running it", "-c", "--cfg", values=("job", "hydra", "all"))
    made.flag("with --cfg: show values instead of ${interpolations}", "--resolve", action="store_true")
    made.flag("with --cfg: show only what lies under this key", "-p", "--package", metavar="KEY")
    told = f"show how Hydra composes: {', '.join(TOPICS)}"
    made.flag(told, "-i", "--info", values=TOPICS, nargs="?", const="all", metavar="[TOPIC]")
    return made


def composing(made: Parser) -> None:
    """Declares the words that compose a run, and the flags that say how."""
    made.words("overrides", offered.overrides)
    told = "every combination of comma-separated values: -m seed=0,1 model=mlp,keras_cnn"
    made.flag(told, "-m", "--multirun", action="store_true")
    made.own_options("look for your own options and experiments in DIR too")
    made.flag("start from another root config than `config`", "-cn", "--config-name", default="config", metavar="NAME")


def act(words: list[str]) -> int:
    """Runs an experiment, or shows its config."""
    flags = read(words)
    from fedexp.commands.launch import launch

    return launch(flags)


def read(words: Sequence[str]) -> Namespace:
    """Reads flags and overrides; refuses flags that contradict each other."""
    flags = parser().read(words)
    if sum((flags.multirun, flags.cfg is not None, flags.info is not None)) > 1:
        raise ConfigError("only one of --multirun, --cfg and --info can be given")
    if flags.cfg is None and (flags.resolve or flags.package):
        raise ConfigError(f"{'--resolve' if flags.resolve else '--package'} needs --cfg; write --cfg job too")
    return flags
