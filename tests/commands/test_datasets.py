import subprocess
import sys

import pytest

from fedexp.commands import datasets as commands
from fedexp.core.errors import ConfigError


def test_every_dataset_has_its_name():
    assert commands.known() == ["cifar10", "digits", "emnist_digits", "har", "mnist", "npz", "synthetic"]
    for name in commands.known():
        if name != "npz":
            assert commands.find(name).name == name


def test_what_is_there(tmp_path):
    lines = []
    assert commands.check(["digits", "synthetic"], tmp_path, lines.append) == 0
    assert lines[0].startswith("digits: the digits of scikit-learn (1,797 images")
    assert lines[1] == "synthetic: needs no files"
    assert commands.download(["synthetic"], tmp_path, lines.append) == 0


def test_what_is_not_there(tmp_path, capsys):
    assert commands.check(["mnist", "digits"], tmp_path) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("mnist: no MNIST/raw/train-images-idx3-ubyte.gz (9,912,422 bytes, MD5 f68b3c2d")
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
    assert commands.check(["mnist"], real(commands.find("mnist")), lines.append) == 0
    assert len(lines) == 4
    assert all(line.endswith("is right") for line in lines)


def test_importing_the_datasets_is_light():
    modules = ["commands.datasets", *(f"parts.dataset.{name}" for name in commands.known())]
    program = "import sys\n" + "\n".join(f"import fedexp.{name}" for name in modules)
    program += "\nprint(sorted({'sklearn', 'pandas', 'scipy', 'torchvision'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
