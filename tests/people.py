"""Whose example each one is, where a dataset says so."""

import torch

from fedexp.parts.dataset.contract import Split


def people(split: Split) -> torch.Tensor:
    assert split.subject is not None, "it does not say whose they are"
    return split.subject
