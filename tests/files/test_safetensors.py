"""A file of tensors, read by the library that defines the format."""

import torch
from safetensors.torch import load

from fedexp.files.safetensors import as_safetensors


def test_the_bytes_of_two_numbers():
    content = as_safetensors({"w": torch.tensor([1.0, -2.0])})
    text = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    padded = text + b" " * (-len(text) % 8)
    assert content == len(padded).to_bytes(8, "little") + padded + b"\x00\x00\x80?\x00\x00\x00\xc0"


def test_the_library_reads_what_was_written():
    entries = {
        "b": torch.tensor(3),
        "a.weight": torch.arange(6.0).view(2, 3).t(),
        "double": torch.ones(0, 2, dtype=torch.float64),
        "half": torch.tensor([0.5], dtype=torch.bfloat16),
    }
    read = load(as_safetensors(entries))
    assert read.keys() == entries.keys()
    assert all(torch.equal(read[name], entry) and read[name].dtype == entry.dtype for name, entry in entries.items())
