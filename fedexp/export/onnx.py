"""Writes a network as ONNX; needs the packages of the extra `onnx`."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

from fedexp.core.errors import ConfigError, first_line

NAME = "model.onnx"
_PACKAGES = ("onnx", "onnxscript")


def demand_packages() -> None:
    """Raises ConfigError where a package is missing."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise ConfigError(f"--onnx needs {' and '.join(missing)}; pip install 'fedexp[onnx]'")


def write_onnx(network: nn.Module, inputs: torch.Tensor, path: Path) -> None:
    """Writes the network for inputs like `inputs [B, *shape]`, of any number of examples; checks nothing.

    Raises:
        ConfigError: PyTorch cannot export it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what PyTorch's exporter itself will change
        try:
            torch.onnx.export(
                network,
                (inputs,),
                str(path),
                input_names=["inputs"],
                output_names=["outputs"],
                dynamic_shapes=({0: torch.export.Dim("examples")},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        except Exception as error:  # whatever the exporter raises
            raise ConfigError(
                f"PyTorch cannot write the network as ONNX: {first_line(error)}; leave out --onnx"
            ) from error
