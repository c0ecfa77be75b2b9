"""Every key of every option at odd values, every pair of options, and words that nobody would type on purpose."""

from collections.abc import Iterator
from itertools import combinations

from omegaconf import OmegaConf

from fedexp.commands.arguments.parsing import COMMANDS
from fedexp.core.nested import walk
from scripts.fuzz.judged import Input, run_of, typed
from tests.composing import CONF, MADE, TINY
from tests.test_every_option import NEEDS, OPTIONS

BUNDLES = ("algorithm", "partition", "setting", "experiment")  # they set keys of other groups
ODD = (
    *("nan", "inf", "-inf", "0", "-1", "0.5", "1e20", "-1e20", "100000000000000000000", "true", "null"),
    *("x", "''", "[]", "[3]", "[nan]", "[[1]]", "{a: 1}", "{_target_: os.system}"),
)
TARGETS = (
    "3",
    "null",
    "..x",
    "x",
    "os.system",
    "fedexp.core.part.Part",
    "fedexp.simulation.setup.experiment.Experiment",
)
SCRIBBLES = (
    *(
        "",
        "-",
        "--",
        "=",
        "a=",
        "=b",
        "seed",
        "seed=",
        "'",
        "{",
        "[",
        "${",
        "seed=${seed}",
        "seed=${nothing}",
        "+",
        "~",
    ),
    *("~seed", "++seed=1", "+seed=1", "é=1", "seed=\n", "seed=1,2", "seed=range(0,1e9)", "x" * 5000, "model=[mlp]"),
    *("~model", "model=mlp model=mlp", "model@x=mlp", "model=null", "model=../mlp", "hydra.run.dir=", "hydra.mode=X"),
    *("hydra.run.dir=/dev/null", "hydra.run.dir=/proc/x", "hydra.verbose=3", "hydra.job.chdir=x", "hydra/launcher=x"),
    *("hydra.verbose=[3]", "hydra.job_logging.root=3", "hydra.hydra_logging.root.level=LOUD"),
    *("hydra.sweeper=x", "hydra.output_subdir=../x", "hydra.searchpath=[pkg://x]", "--config-name=x", "--config-dir=x"),
    *("--cfg", "--cfg=x", "--info=x", "--package=x", "--resolve", "-x", "--all", "--out=/dev/null/x", "--rounds=nan"),
    *("nothing", ".", "/dev/null", "/dev/zero", "\udcff", "*", "~", "..", "seed=" + "[" * 500),
)
OFFLINE = tuple(name for name in COMMANDS if name != "data")


def needed(*options: str) -> tuple[str, ...]:
    """What options need to do two rounds, as far as none of them says otherwise."""
    groups = [option.partition("=")[0] for option in options]
    wanted = [word for option in options for word in NEEDS.get(option, ()) if word.partition("=")[0] not in groups]
    made = () if "dataset" in groups else MADE
    return tuple(dict.fromkeys((*made, *TINY, *wanted, *options)))


def keys() -> Iterator[Input]:
    """Every key at every odd value."""
    for option in OPTIONS:
        group, _, name = option.partition("=")
        if group in BUNDLES:
            continue
        node = OmegaConf.to_container(OmegaConf.load(CONF / group / f"{name}.yaml"), resolve=False)
        assert isinstance(node, dict)
        for key, _ in walk(node if "_target_" in node else node[group]):
            yield from _at_odd_values(needed(option), f"{group}.{key}")
    root = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"), resolve=False)
    assert isinstance(root, dict)
    for key, value in walk({name: node for name, node in root.items() if name not in ("defaults", "hydra")}):
        if not isinstance(value, dict):
            yield from _at_odd_values(needed(), key)


def _at_odd_values(words: tuple[str, ...], key: str) -> Iterator[Input]:
    for value in TARGETS if key.endswith("_target_") else ODD:
        yield run_of(*words, f"{key}={value}")


def pairs() -> Iterator[Input]:
    """Every two options of different groups."""
    for one, other in combinations(OPTIONS, 2):
        if one.partition("=")[0] != other.partition("=")[0]:
            yield run_of(*needed(one, other))


def scribbles() -> Iterator[Input]:
    """Every command with odd words, typed as they are."""
    for command in OFFLINE:
        own = (*MADE, *TINY, "hydra.run.dir=run") if command in ("run", "plan", "search") else ()
        for word in SCRIBBLES:
            yield typed(command, *own[: len(own) if command == "run" else -1], word)
            yield typed(command, word)
