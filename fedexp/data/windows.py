"""Cuts labelled segments of recordings into windows of equal length.

Legend: T samples of a recording, W windows, L stretches, H channels.
"""

import numpy as np

LENGTH = 128
STEP = 64


def window_starts(length: int) -> np.ndarray:
    """The first samples `[W]` of the windows in a segment of `length` samples: W is length // 64 - 1, at least 0."""
    return STEP * np.arange(max(0, length // STEP - 1))


def cut_segment(signal: np.ndarray, first: int, last: int) -> np.ndarray:
    """Windows `[W, H, 128]` of one segment of a recording `[T, H]`; first and last count from 1 and are included."""
    begin = first - 1 + window_starts(last - first + 1)
    return signal[begin[:, None] + np.arange(LENGTH)].transpose(0, 2, 1)


def cut_all_segments(signals: dict[int, np.ndarray], labels: np.ndarray) -> dict[str, np.ndarray]:
    """Every window of every segment, with class and person: `x [W, H, 128]`, `y [W]` from 0, `subject [W]`.

    `signals` holds each recording `[T, H]`; `labels [L, 5]`: recording, person, activity (from 1), first sample, last.
    """
    pieces = [cut_segment(signals[recording], first, last) for recording, _, _, first, last in labels.tolist()]
    counts = [len(piece) for piece in pieces]
    return {
        "x": np.concatenate(pieces).astype(np.float32),
        "y": np.repeat(labels[:, 2] - 1, counts).astype(np.int64),
        "subject": np.repeat(labels[:, 1], counts).astype(np.int64),
    }
