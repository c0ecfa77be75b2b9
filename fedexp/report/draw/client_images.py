"""`seen.png`: some images of some clients, where the federation makes clients see differently. Legend: N clients."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.draw import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLIENT_IMAGES = 6  # at most, of a client
_IMAGE_CLIENTS = 10  # at most


@style.style()
def draw_images(path: Path, images: dict[int, np.ndarray], high: float) -> None:
    """Writes what clients see; `images` holds those of each client, `[n, H, W, channels]`, from 0 to `high`."""
    style.save(path, image_figure(images, high))


def image_figure(images: dict[int, np.ndarray], high: float) -> "Figure":
    """A row of images for each client, which are `[n, H, W, channels]`; other than three channels are averaged."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(1.2 + 0.9 * CLIENT_IMAGES, 0.6 + 0.9 * len(images)), layout="constrained")
    drawn.suptitle("What clients see", fontsize=11)
    rows = drawn.subplots(len(images), CLIENT_IMAGES, squeeze=False)
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


def choose_image_clients(sizes: np.ndarray) -> list[int]:
    """The clients that are drawn, of those `sizes [N]` with examples: at most ten, evenly over their numbers."""
    candidates = np.flatnonzero(sizes)
    if not len(candidates):
        return []
    positions = np.linspace(0, len(candidates) - 1, _IMAGE_CLIENTS).round().astype(int)
    return candidates[np.unique(positions)].tolist()


def _scale_pixels(image: np.ndarray, high: float) -> np.ndarray:
    scaled = np.clip(image.astype(np.float64) / high, 0, 1)
    return scaled if scaled.shape[-1] == 3 else scaled.mean(axis=-1)
