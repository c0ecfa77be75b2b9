"""Groups of clients that see their images rotated.

Source: the rotated MNIST and CIFAR of Ghosh, Chung, Yin & Ramchandran, "An Efficient Framework for Clustered Federated
Learning" (IFCA, NeurIPS 2020, arXiv 2006.04088, section 6): clients belong to groups, and the images of group g are
rotated by the g-th angle. The data is divided at random in equal parts; client k belongs to group k modulo the number
of angles. Clustering is measured against these groups.

Deviations: there every image is rotated by each angle and all copies are shared out; here each image has one owner.
What clients hold out or set apart is rotated like what they train on. The server's data are not: the test data, its
validation data and the public data. Angles are degrees counterclockwise. Multiples of 90 move pixels exactly; others
take the nearest pixel, and corners that come from outside are 0.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import ConfigError, Facts, Range
from fedexp.parts.federation.iid import IID


def rotate_images(x: torch.Tensor, angle: float) -> torch.Tensor:
    """Rotates the images `[n, C, H, W]` counterclockwise by `angle` degrees; their shape stays."""
    quarters, remainder = divmod(angle, 90)
    if not remainder:
        return torch.rot90(x, int(quarters), (2, 3))
    from torchvision.transforms.functional import rotate

    return rotate(x, angle)


class Rotation(IID):
    """A group of clients for each of the `angles`."""

    shifts_features = True

    angles: tuple[Annotated[float, Range(-360, 360)], ...] = (0.0, 90.0, 180.0, 270.0)

    def check(self) -> None:
        if not self.angles:
            raise ConfigError("Rotation.angles must hold at least one angle in degrees, got none; set [0,90,180,270]")

    def refuse(self, facts: Facts) -> None:
        if len(facts.shape) != 3 or facts.vocabulary:
            raise ConfigError(
                f"federation=rotation needs images (channels, height, width), but the examples have shape "
                f"{facts.shape}; use an image dataset or federation=feature_noise"
            )
        if facts.shape[1] != facts.shape[2] and any(angle % 180 == 90 for angle in self.angles):
            raise ConfigError(
                f"federation.angles must not turn images of {facts.shape[1]} x {facts.shape[2]} pixels by 90 degrees, "
                f"as only square ones keep their shape, got {list(self.angles)}; use [0,180]"
            )

    def shift_features(
        self, x: torch.Tensor, client: int, clients: int, scale: float, rng: np.random.Generator
    ) -> torch.Tensor:
        return rotate_images(x, self.angles[client % len(self.angles)])

    def groups(self, clients: int) -> np.ndarray:
        return np.arange(clients) % len(self.angles)
