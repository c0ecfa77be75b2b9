"""The three files of an own part: the example of its group under another name, its option, and a test.

They lie where `--config-dir conf` and `PYTHONPATH=.` find them: `mine/NAME.py`, `conf/GROUP/NAME.yaml`, `tests/`.
"""

import keyword
import re
from contextlib import ExitStack
from pathlib import Path

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.files.atomic import display_path, publish, scratch_path

EXAMPLES = Path(__file__).parent / "examples"
BUNDLE = 'chooses options of other groups and needs no code; write a YAML file as "An experiment" in docs/parts.md does'
HYDRAS = "is Hydra's own, and runs the points of a sweep; install a plugin of Hydra"
NO_PARTS = {
    "engine": "computes what the parts say and must not change it; write a rule of training: fedexp new local NAME",
    "server_schedule": "has the options of schedule; write fedexp new schedule NAME and copy its option here",
    **dict.fromkeys(("algorithm", "experiment", "partition", "setting"), BUNDLE),
    **dict.fromkeys(("hydra/launcher", "hydra/sweeper", "launcher", "sweeper"), HYDRAS),
}
REQUIRED_OVERRIDES = {  # what a part of the group needs to have anything to do
    "attack": ("scenario.malicious=3",),
    "features": ("scenario.public_fraction=0.2",),
    "pretraining": ("scenario.public_fraction=0.2",),
}
VALUES = ("null", "true", "false", "on", "off", "yes", "no", "inf", "nan")  # words that no option can have for a name
TEST = '''\
"""Two rounds with {choice}. Write beside it what you can check with a pencil."""

from pathlib import Path

from fedexp import run

CONF = Path(__file__).parents[1] / "conf"


def test_two_rounds(tmp_path: Path):
    done = run({words}, config_dir=CONF, folder=tmp_path / "run", quiet=True)
    assert len(done.metrics) == 2
'''


def groups() -> list[str]:
    """The groups that own parts can belong to."""
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


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
    return " ".join(
        ["PYTHONPATH=. fedexp run --config-dir conf", f"{group}={name}", *REQUIRED_OVERRIDES.get(group, ()), "rounds=3"]
    )


def files(group: str, name: str) -> dict[str, str]:
    """Returns the contents of the new files by their paths in the user's folder.

    Raises:
        ConfigError: the class would have a name that its module imports.
    """
    code, option = ((EXAMPLES / f"{group}.{end}").read_text(encoding="utf-8") for end in ("py", "yaml"))
    example, class_name = re.findall(r"class (Own\w+)", code)[0], "".join(map(_capital, name.split("_")))
    if class_name != example and re.search(rf"\b{class_name}\b", code):
        raise ConfigError(
            f"the class of {name} would be {class_name}, which its module needs for another; choose a longer name"
        )
    words = (f"{group}={name}", *REQUIRED_OVERRIDES.get(group, ()), "rounds=2", "pictures=false")
    return {
        f"mine/{name}.py": code.replace(example, class_name),
        f"conf/{group}/{name}.yaml": option.replace(
            f"fedexp.new.examples.{group}.{example}", f"mine.{name}.{class_name}"
        ),
        f"tests/test_{name}.py": TEST.format(choice=words[0], words=", ".join(f'"{word}"' for word in words)),
    }


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


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
