"""The three files of an own part: a small part of its group under another name, its option, and a test.

It is a copy of one of our options where one is small and needs nothing but `fedexp.parts`, else an example that is kept
for this. Its docstring ends with what a part of the group may override. The files lie where `--config-dir conf` finds
them, and Python from the working folder: `mine/NAME.py`, `conf/GROUP/NAME.yaml`, `tests/`.
"""

import ast
import keyword
import re
from contextlib import ExitStack
from pathlib import Path
from textwrap import fill, indent

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.roles import ROLES
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.files.atomic import display_path, publish, scratch_path

EXAMPLES = Path(__file__).parent / "examples"
COPIES = {  # our option that a new part of a group is a copy of
    "aggregator": "median",
    "attack": "sign_flip",
    "augment": "crop_flip",
    "clustering": "ifca",
    "codec": "float16",
    "federation": "iid",
    "local": "adam",
    "pacing": "periodic",
    "pre_aggregation": "nearest_neighbours",
    "pretraining": "public",
    "schedule": "exponential",
    "server_optimizer": "momentum",
    "stop": "patience",
}
LINE = 120  # characters
BUNDLE = 'chooses options of other groups and needs no code; write a YAML file as "An experiment" in docs/parts.md does'
METRIC = (
    "is a function f2(probabilities, targets) that returns a number; write it into my_metrics.py and add "
    "'evaluation.metrics=[accuracy,my_metrics:f2]'"
)
HYDRAS = "is Hydra's own, and runs the points of a sweep; install a plugin of Hydra"
NO_PARTS = {
    "engine": "computes what the parts say and must not change it; write a rule of training: fedexp new local NAME",
    "server_schedule": "has the options of schedule; write fedexp new schedule NAME and copy its option here",
    **dict.fromkeys(("algorithm", "experiment", "partition", "setting"), BUNDLE),
    **dict.fromkeys(("metric", "metrics", "evaluation"), METRIC),
    **dict.fromkeys(("hydra/launcher", "hydra/sweeper", "launcher", "sweeper"), HYDRAS),
}
REQUIRED_OVERRIDES = {  # what a part of the group needs to have anything to do
    "attack": ("scenario.malicious=3",),
    "availability": ("fleet=simulated",),
    "features": ("scenario.public_fraction=0.2",),
    "pretraining": ("scenario.public_fraction=0.2",),
}
VALUES = ("null", "true", "false", "on", "off", "yes", "no", "inf", "nan", "none")  # names of no option
TEST = '''\
"""What every part owes, with {choice}. Write beside it what you can check with a pencil."""

from pathlib import Path

from fedexp import resume, rounds, run

WORDS = ({words})
CONF = Path(__file__).parents[1] / "conf"


def test_two_rounds(tmp_path: Path):
    done = run(*WORDS, config_dir=CONF, folder=tmp_path / "run", quiet=True)
    assert len(done.metrics) == 2


def test_same_bytes_again_with_two_workers_and_after_a_break(tmp_path: Path):
    for workers in (1, 2):
        run(*WORDS, f"engine.workers={{workers}}", config_dir=CONF, folder=tmp_path / str(workers), quiet=True)
    for _ in rounds(*WORDS, "checkpoint_s=0", config_dir=CONF, folder=tmp_path / "begun", quiet=True):
        break
    resume(tmp_path / "begun", config_dir=CONF, quiet=True)
    digests = [(tmp_path / name / "digests.csv").read_text() for name in ("1", "2", "begun")]
    assert len(set(digests)) == 1, "draw by ctx.rng alone, and keep what must outlive a round in the memory"
'''


def groups() -> list[str]:
    """The groups that own parts can belong to."""
    return sorted([*COPIES, *(path.stem for path in EXAMPLES.glob("*.yaml"))])


def example_option(group: str) -> Path:
    """The option that a new part of a group is made of."""
    return conf_dir() / group / f"{COPIES[group]}.yaml" if group in COPIES else EXAMPLES / f"{group}.yaml"


def write(group: str, name: str, into: Path) -> list[Path]:
    """Writes the module, the option and the test below a folder; all of them or nothing.

    Raises:
        ConfigError: there is no such group, the name cannot be an option's, or something is there already.
    """
    _refuse_group(group)
    _refuse_name(group, name)
    contents = {into / path: text for path, text in files(group, name).items()}
    for path in contents:
        _refuse_taken(path)
    with ExitStack() as partial_files:
        parts = {path: partial_files.enter_context(scratch_path(path)) for path in contents}
        for path, part in parts.items():
            part.write_text(contents[path], encoding="utf-8")
        for path, part in parts.items():
            publish(part, path)
    return list(contents)


def trial_command(group: str, name: str) -> str:
    """The command that tries the part, in the folder that it was written to."""
    return " ".join(["fedexp run --config-dir conf", f"{group}={name}", *REQUIRED_OVERRIDES.get(group, ()), "rounds=3"])


def files(group: str, name: str) -> dict[str, str]:
    """Returns the contents of the new files by their paths in the user's folder.

    Raises:
        ConfigError: the class would have a name that its module imports.
    """
    path = example_option(group)
    option = path.read_text(encoding="utf-8")
    module, example = re.findall(r"^_target_: (\S+)\.(\w+)$", option, re.MULTILINE)[0]
    code, class_name = _read_module(module), "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    nodes = ast.walk(ast.parse(code))
    if class_name != example and class_name in {getattr(node, "id", getattr(node, "name", "")) for node in nodes}:
        raise ConfigError(
            f"the class of {name} would be {class_name}, which its module needs for another; choose a longer name"
        )
    code = code.replace(f"class {example}(", f"class {class_name}(").replace(f"{group}={path.stem}", f"{group}={name}")
    code = _with_public_imports(_with_overridable_methods(code, group))
    words = (f"{group}={name}", *REQUIRED_OVERRIDES.get(group, ()), "rounds=2", "pictures=false")
    return {
        f"mine/{name}.py": code,
        f"conf/{group}/{name}.yaml": option.replace(f"{module}.{example}", f"mine.{name}.{class_name}"),
        f"tests/test_{name}.py": TEST.format(choice=words[0], words=", ".join(f'"{word}"' for word in words)),
    }


def _read_module(name: str) -> str:
    """The text of a module of ours, which is not imported: nobody is to wait for PyTorch."""
    return Path(__file__).parents[2].joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")


def _with_overridable_methods(code: str, group: str) -> str:
    """A module whose docstring tells, at its end, what a part of the group may override, as its contract says it."""
    module, _, contract = next(role.contract for role in ROLES if role.name == group).rpartition(".")
    classes = {node.name: node for node in ast.parse(_read_module(module)).body if isinstance(node, ast.ClassDef)}
    methods = [node for node in classes[contract].body if isinstance(node, ast.FunctionDef)]
    lines, end = code.splitlines(), ast.parse(code).body[0].end_lineno
    docstring = "\n".join(lines[:end]).removesuffix('"""').rstrip()
    origin = f"This is a copy of {group}={COPIES[group]}, to begin with. " if group in COPIES else ""
    heading = f"{origin}What a part of this group may override, as {module.replace('.', '/')}.py says:"
    return "\n".join(
        [docstring, "", fill(heading, LINE), "", *filter(None, map(_describe, methods)), '"""', *lines[end:], ""]
    )


def _describe(method: ast.FunctionDef) -> str:
    """A line, or some, on what a method of a contract does; nothing without a docstring."""
    text = " ".join((ast.get_docstring(method) or "").split("\n\n")[0].split())
    is_property = any(getattr(decorator, "id", "") == "property" for decorator in method.decorator_list)
    arguments = "" if is_property else f"({', '.join(argument.arg for argument in method.args.args[1:])})"
    item = f"* `{method.name}{arguments}`: {text}" if text else ""
    return fill(item, LINE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _with_public_imports(code: str) -> str:
    """A module that imports from `fedexp.parts` what it imported from our modules."""
    body = ast.parse(code).body
    imports = [node for node in body if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fedexp.")]
    names = {alias.name for node in imports for alias in node.names}
    listed = ", ".join(sorted(names, key=lambda name: (not name.isupper(), name.islower(), name)))
    statement = f"from fedexp.parts import {listed}"
    if len(statement) > LINE:
        statement = f"from fedexp.parts import (\n{indent(fill(listed, LINE - 5), ' ' * 4)},\n)"
    lines = code.splitlines()
    for node in reversed(imports):
        lines[node.lineno - 1 : node.end_lineno] = [statement] if node is imports[0] else []
    return "\n".join([*lines, ""])


def _refuse_group(group: str) -> None:
    if group in NO_PARTS:
        raise ConfigError(f"{group} cannot be an own part: it {NO_PARTS[group]}")
    if group not in groups():
        raise ConfigError(f"unknown group {group}; {did_you_mean(group, groups())}")


def _refuse_name(group: str, name: str) -> None:
    readable = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not keyword.iskeyword(name)
    if not readable or name.lower() in VALUES:
        raise ConfigError(
            f"an own part needs a name of letters, digits and _ that Python and the command line can read, got {name}; "
            f"e.g. fedexp new {group} my_{group}"
        )
    existing = catalog.options(conf_dir(), group)
    if name in existing:
        raise ConfigError(f"{group}={name} is an option already; choose another name than {', '.join(existing)}")


def _refuse_taken(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise ConfigError(
            f"{display_path(path)} is there already, and nothing is overwritten; choose another name or --into"
        )
    above = next(folder for folder in path.parents if folder.exists() or folder.is_symlink())
    if not above.is_dir():
        raise ConfigError(
            f"{display_path(above)} must be a folder to write {display_path(path)} in; choose another --into"
        )
