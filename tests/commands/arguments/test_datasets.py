import subprocess
import sys

import pytest

from fedexp.commands import data
from fedexp.commands.arguments import datasets as commands
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError


def test_every_dataset_has_its_name():
    assert commands.dataset_names() == sorted(path.stem for path in (conf_dir() / "dataset").glob("*.yaml"))


def test_keys_of_a_dataset_are_given_as_a_run_takes_them(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("age,ward,sick,old\n1,a,yes,1\n2,b,no,2\n3,a,yes,1\n4,b,no,2\n")
    words = ["data_dir=" + str(tmp_path), "dataset.file=mine.csv", "dataset.test_fraction=0.5", "dataset.ignore=[old]"]
    assert data.act(["check", "table", "dataset.target=sick", *words]) == 0
    assert "2 training rows of 3 numbers, 2 classes" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"unknown key dataset.splt; did you mean split"):
        data.act(["check", "torchvision", "dataset.name=KMNIST", "dataset.splt=a"])
    with pytest.raises(ConfigError, match=r"dataset.name=KMNIST must be given with one dataset, got torchvision and"):
        data.act(["check", "torchvision", "mnist", "dataset.name=KMNIST"])
    with pytest.raises(ConfigError, match=r"dataset.name must be followed by a value"):
        data.act(["check", "torchvision", "dataset.name"])


def test_what_is_there(tmp_path):
    lines = []
    assert commands.check(["digits", "synthetic"], tmp_path, lines.append) == 0
    assert lines[0].startswith("digits: the digits of scikit-learn (1,797 images")
    assert lines[1] == "synthetic: needs no files"
    assert commands.check(["text"], tmp_path, lines.append) == 0  # a key of it follows the scenario
    assert commands.download(["synthetic"], tmp_path, lines.append) == 0


def test_what_is_not_there(tmp_path, capsys):
    assert commands.check(["mnist", "digits"], tmp_path) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("mnist: no MNIST/raw/train-images-idx3-ubyte.gz in ")
    assert "MD5 f68b3c2d" in first
    assert second.startswith("digits: ")


def test_unknown_name_stops_before_the_first_check(tmp_path):
    lines = []
    with pytest.raises(ConfigError, match="there is no dataset mnits; did you mean mnist"):
        commands.check(["digits", "mnits"], tmp_path, lines.append)
    assert lines == []


def test_npz_has_no_default_file(tmp_path):
    with pytest.raises(ConfigError, match=r"dataset.path must be given; set dataset.path=..."):
        commands.check(["npz"], tmp_path)


def test_real_files(real):
    lines = []
    assert commands.check(["mnist"], real(commands.find_dataset("mnist")), lines.append) == 0
    assert len(lines) == 4
    assert all(line.endswith("is right") for line in lines)


def test_importing_the_datasets_is_light():
    modules = ["commands.arguments.datasets", *(f"parts.dataset.{name}" for name in commands.dataset_names())]
    program = "import sys\n" + "\n".join(f"import fedexp.{name}" for name in modules)
    program += "\nprint(sorted({'sklearn', 'pandas', 'scipy', 'torchvision'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
