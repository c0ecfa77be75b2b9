"""Writes tensors as a safetensors file (huggingface.co/docs/safetensors): a header in JSON, then the bytes.

It is read without pickle, and by other frameworks. Eight lines need no package.
"""

import json
from collections.abc import Mapping

import torch

TYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.int32: "I32", torch.uint8: "U8"}
TYPES |= {torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL", torch.int8: "I8", torch.int16: "I16"}


def as_safetensors(entries: Mapping[str, torch.Tensor]) -> bytes:
    """The content of a file that holds these tensors (any shape) by name; their bytes lie in the order of names."""
    header, pieces, offset = {}, [], 0
    for name, entry in sorted(entries.items()):
        content = entry.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": TYPES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [offset, offset + len(content)],
        }
        pieces.append(content)
        offset += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(pieces)
