"""`seen.png`: the images of some clients as these see them, where the federation makes clients see differently."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.draw import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLIENTS, IMAGES = 10, 6


@style.style()
def draw(path: Path, images: dict[int, np.ndarray], high: float) -> None:
    """Writes the picture; `images` holds those of each client, `[n, H, W, channels]`, from 0 to `high`."""
    style.save(path, figure(images, high))


def figure(images: dict[int, np.ndarray], high: float) -> "Figure":
    """A row of images for each client, which are `[n, H, W, channels]`; other than three channels are averaged."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(1.2 + 0.9 * IMAGES, 0.6 + 0.9 * len(images)), layout="constrained")
    drawn.suptitle("What clients see", fontsize=11)
    rows = drawn.subplots(len(images), IMAGES, squeeze=False)
    for row, (client, client_images) in zip(rows, images.items(), strict=True):
        for column, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if column < len(client_images):
                axes.imshow(
                    _scale_pixels(client_images[column], high), cmap="gray", vmin=0, vmax=1, interpolation="nearest"
                )
        row[0].set_ylabel(f"Client {client}", rotation=0, ha="right", va="center")
    return drawn


def choose_clients(sizes: np.ndarray) -> list[int]:
    """The clients that are drawn, of those `sizes [N]` with examples: at most ten, evenly over their numbers."""
    candidates = np.flatnonzero(sizes)
    return (
        candidates[np.unique(np.linspace(0, len(candidates) - 1, CLIENTS).round().astype(int))].tolist()
        if len(candidates)
        else []
    )


def _scale_pixels(image: np.ndarray, high: float) -> np.ndarray:
    scaled = np.clip(image.astype(np.float64) / high, 0, 1)
    return scaled if scaled.shape[-1] == 3 else scaled.mean(axis=-1)
