"""Builds `_pretend` beside this file with g++: python build.py (about a minute; torch's headers are large)."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import torch

HERE = Path(__file__).parent


def build() -> Path:
    """The shared object, made anew where it is missing or older than its source or than PyTorch."""
    root, source = Path(torch.__file__).parent, HERE / "pretend.cpp"
    out = HERE / f"_pretend{sysconfig.get_config_var('EXT_SUFFIX')}"
    if out.exists() and out.stat().st_mtime > max(source.stat().st_mtime, (root / "version.py").stat().st_ctime):
        return out
    include = [root / "include", root / "include/torch/csrc/api/include", sysconfig.get_paths()["include"]]
    temporary = out.with_suffix(f".{os.getpid()}")
    command = ["g++", "-std=c++20", "-shared", "-fPIC", "-w", *(f"-I{path}" for path in include)]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", str(source), "-o", str(temporary)]
    command += [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch_python"]
    subprocess.run(command, check=True)
    temporary.replace(out)
    return out


if __name__ == "__main__":
    build()
    sys.exit()
