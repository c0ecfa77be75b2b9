"""What the pages show a reader works, typed as it stands."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hydra.types import RunMode
from pages import GUIDE, HOUSE, PAGES, STUDIES, commands, files, name, write
from processes import typed

from fedexp import __version__, cli
from fedexp.commands.run import read
from fedexp.config.compose import Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.run.isolation import isolate_process
from fedexp.run.validate import validate_config
from fedexp.simulation.setup import compatibility
from fedexp.sweep import points as sweep
from scripts import options

LINK = re.compile(r"\]\(([^)#\s:]+)(#[\w-]*)?\)")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository, as the guide has it."""
    folder = tmp_path_factory.mktemp("own")
    text = GUIDE.read_text()
    write(folder, files(text.partition("## In this project itself")[0]))
    return folder


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the project that a reader may add to."""
    for part in ("fedexp", "conf", "tests"):
        shutil.copytree(HOUSE / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HOUSE / "pyproject.toml", tmp_path)
    return tmp_path


def python(folder: Path, *words: str, path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache  # pages repeat each other's commands
def composed(*words: str) -> None:
    """Composes and checks what `fedexp run` would run, but does not look for the files of datasets."""
    flags = read(words)
    own = Path(flags.config_dir) if flags.config_dir else None
    request = Request(conf_dir(), flags.overrides, flags.config_name, own)
    with isolate_process():
        composer = make_composer(request)
        if flags.multirun:
            overrides = [*request.overrides, "hydra.mode=MULTIRUN"]
            config = composer.compose_config("config", overrides, RunMode.MULTIRUN)
            sweep.drop_overridden_params(config)
            point = sweep.expand_points(composer, config)[0]
            sweep.validate_point(composer, config, point)
        else:
            validate_config(
                composer, composer.compose_config("config", request.overrides, RunMode.RUN), request.overrides
            )


@pytest.mark.parametrize("page", [*PAGES, *STUDIES], ids=name)
def test_every_command_is_understood(page: Path, own: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(own)
    monkeypatch.syspath_prepend(own)
    monkeypatch.setattr(compatibility, "refuse", lambda _: None)  # it needs the files of the datasets
    for command in commands(page):
        _, first, *words = shlex.split(command)
        assert first in cli.COMMANDS, command
        is_list = any(word.startswith("points=") for word in words)  # of a file that the reader has
        if first == "run" and not is_list and not {"selector.cout=3", "--cfg"} & set(words):
            try:
                composed(*words)
            except ConfigError as error:
                raise AssertionError(f"{command}: {error}") from error


def test_the_pages_show_commands_at_all():
    assert len(commands(HOUSE / "README.md")) >= 5
    assert len(commands(HOUSE / "docs" / "index.md")) >= 10
    assert len(commands(GUIDE)) >= 5


@pytest.mark.parametrize("page", [*PAGES, *STUDIES, *sorted(HOUSE.glob("scripts/replays/*/README.md"))], ids=name)
def test_no_shell_expands_a_word_of_a_command(page: Path):
    bare = [re.sub(r"'[^']*'|\"[^\"]*\"", "", command) for command in commands(page)]
    assert [command for command in bare if re.search(r"[\[\](){}*?$;&|<>~]", command)] == []


@pytest.mark.parametrize("page", [*PAGES, *STUDIES, HOUSE / "CHANGELOG.md"], ids=name)
def test_every_link_leads_somewhere(page: Path):
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path
        assert target.exists(), f"{page}: {path}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor[1:] in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, anchor


def test_the_tables_show_what_there_is():
    assert options.main(["--check"]) == 0


def test_version_and_citation_agree():
    import yaml

    cited = yaml.safe_load((HOUSE / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["version"] == __version__
    assert f"## [{__version__}]" in (HOUSE / "CHANGELOG.md").read_text()


def test_parts_of_a_users_own_repository(own: Path):
    parts = ["distilled", "focal", "middle_mean", "nets", "residual", "tumours", "waiting"]
    assert sorted(path.stem for path in (own / "mine").glob("*.py")) == parts
    assert "3 passed" in python(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", path=str(HOUSE))
    told = typed(own, "run", "--config-dir", "conf", "dataset=tumours", "rounds=3", "selector=waiting",
                 "aggregator=middle_mean", "model=residual", "loss=focal", "local=distilled",
                 "engine=loop", "pictures=false", PYTHONPATH=str(HOUSE))  # fmt: skip
    assert "final accuracy" in told.stdout, told.stderr


def test_a_module_that_cannot_be_found_or_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path, {"hasty/part.py": "import nowhere_to_be_found\n"})
    with pytest.raises(
        ConfigError, match="there is no module absent here; go to its folder, put that on PYTHONPATH, or install it"
    ):
        spec.find_class("absent.part.Part", "selector")
    with pytest.raises(ConfigError, match="cannot be imported: No module named 'nowhere_to_be_found'"):
        spec.find_class("hasty.part.Part", "selector")


def test_the_workflow_is_yaml_whose_commands_there_are(own: Path):
    import yaml

    workflow = yaml.safe_load((own / ".github" / "workflows" / "experiments.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["experiments"]["steps"] if "run" in step]
    own_words = [step.split()[1] for step in steps if step.startswith("fedexp ")]
    assert own_words
    assert set(own_words) <= set(cli.COMMANDS)


def test_a_selector_of_the_project_is_one_python_file_one_yaml_file_and_one_test(house: Path):
    outside, inside = GUIDE.read_text().split("## In this project itself")
    shown = files(outside)
    write(house, {
        "fedexp/parts/selector/waiting.py": shown["mine/waiting.py"],
        "conf/selector/waiting.yaml": shown["conf/selector/waiting.yaml"].replace("mine.", "fedexp.parts.selector."),
        **files(inside),
    })  # fmt: skip
    assert (house / "tests" / "parts" / "selector" / "test_waiting.py").exists()
    tests = ("tests/parts/selector/test_waiting.py", "tests/parts/selector/test_contract.py")
    asked = ["-v", "-p", "no:cacheprovider", *tests, "-k", "waiting"]
    both = "main(['list', 'selector']) or main(['run', 'selector=waiting', 'rounds=2', 'pictures=false'])"
    acts = f"import pytest, sys; from fedexp.cli import main; sys.exit(pytest.main({asked}) or {both})"
    told = python(house, "-c", acts, path=str(house))
    passed = [line.split("::")[0] for line in told.splitlines() if line.partition(" PASSED")[1]]
    assert passed.count(tests[0]) == 1
    assert passed.count(tests[1]) >= 5
    assert "waiting" in told.partition(" passed")[2]
    assert "final accuracy" in told
