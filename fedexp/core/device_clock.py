"""Seconds of work on a device: a GPU is asked to do things and does them later, so that it is waited for."""

import time

import torch


def now(device: torch.device) -> float:
    """Seconds of a clock, read when everything that this process asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
