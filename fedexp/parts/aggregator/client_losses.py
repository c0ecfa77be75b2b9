"""What clients say of the model that they received."""

import numpy as np

from fedexp.parts import Uploads


def received_losses(uploads: Uploads) -> np.ndarray:
    """The loss `[C]` of the model that each received, on its own data: the exact one if asked for, else running."""
    return uploads.loss_before if uploads.exact is None else uploads.exact[:, 0]
