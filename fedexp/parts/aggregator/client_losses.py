"""What clients say of the model that they received."""

import numpy as np

from fedexp.parts import Uploads


def finite_losses(uploads: Uploads, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss `[C]` of the model that each received, on its own data, and the `weight [C]` of each.

    Losses are exact if they were asked for, else running ones. Who reports a loss that is not finite has weight 0, and
    the loss 0.
    """
    losses = uploads.loss_before if uploads.exact is None else uploads.exact[:, 0]
    finite = np.isfinite(losses)
    return np.where(finite, losses, 0.0), np.where(finite, weight, 0.0)
