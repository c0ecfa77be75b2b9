"""Networks whose layers are known, by name, with the shape of an example: for passes that are written out."""

from collections.abc import Callable

from torch import nn

from fedexp.parts.layers import Residual

Example = tuple[int, ...]
CHAINS: dict[str, tuple[Callable[[], nn.Module], Example]] = {
    "linear": (lambda: nn.Linear(5, 3), (5,)),
    "no bias": (lambda: nn.Sequential(nn.Linear(5, 4, bias=False), nn.Tanh(), nn.Linear(4, 3, bias=False)), (5,)),
    "ends in ReLU": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(5, 4), nn.ReLU()), (5,)),
    "convolutions": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3, stride=2, groups=2)),
            *(nn.Tanh(), nn.Conv2d(6, 3, 2, dilation=2, bias=False), nn.Flatten(), nn.Linear(3, 2)),
        ),
        (2, 8, 8),
    ),
    "long lines": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 2, 1), nn.Tanh(), nn.Conv2d(2, 3, (3, 5), padding=1), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(72, 47), nn.Tanh(), nn.Linear(47, 3)),
        ),
        (2, 6, 6),
    ),
    "residual sums": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, padding=1), Residual(nn.Sequential(nn.Tanh(), nn.Conv2d(4, 4, 3, padding=1)))),
            Residual(nn.Sequential(nn.Conv2d(4, 3, 3, stride=2), nn.Tanh()), nn.Conv2d(4, 3, 3, stride=2)),
            *(nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)),
        ),
        (2, 8, 8),
    ),
    "sums in sums": (
        lambda: nn.Sequential(
            Residual(nn.Sequential(nn.ReLU(), nn.Dropout(0.2)), nn.Linear(5, 5)),
            Residual(nn.Sequential(nn.ReLU(), Residual(nn.Linear(5, 5)), nn.Dropout(0.3)), nn.Linear(5, 5)),
            *(nn.Tanh(), nn.Linear(5, 2)),
        ),
        (5,),
    ),
    "GELU": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 2), nn.GELU(), nn.Flatten(), nn.GELU("tanh"), nn.Linear(12, 2), nn.GELU()
        ),
        (2, 3, 3),
    ),
    "dropout": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Dropout2d(0.5), nn.Dropout(0.0), nn.Conv2d(4, 4, 1), nn.Dropout(0.3)),
            *(nn.ReLU(), nn.Flatten(), nn.Dropout(0.4), nn.Identity(), nn.Linear(16, 2)),
        ),
        (2, 4, 4),
    ),
}
