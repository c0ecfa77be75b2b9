"""Three ways of convolving rows with weights of their own give the numbers of PyTorch's convolution, row by row."""

import csv
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from fedexp.training.layers.kinds.convolution.batched import IMPLEMENTATIONS, Im2col
from fedexp.training.layers.kinds.convolution.choice import choose_implementation, choose_pieces
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.layer_pass import BatchedContext

ROWS, BATCH = 3, 4
MEASURED = Path(__file__).parents[3] / "scripts/studies/benchmarks/gpu_convolutions.csv"
LAYERS = {
    "plain": (lambda: nn.Conv2d(2, 5, 3), (2, 6, 7)),
    "padded": (lambda: nn.Conv2d(2, 5, (3, 4), padding=(1, 2)), (2, 6, 7)),
    "no bias": (lambda: nn.Conv2d(1, 2, 1, bias=False), (1, 3, 3)),
    "strided": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), (2, 8, 7)),
    "dilated": (lambda: nn.Conv2d(2, 3, 3, dilation=2, padding=2), (2, 6, 7)),
    "much padding": (lambda: nn.Conv2d(2, 3, 2, padding=3), (2, 4, 4)),
    "grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), (4, 5, 5)),
    "signal": (lambda: nn.Conv1d(2, 3, 4, stride=1, padding=2), (2, 9)),
}


def images(x: torch.Tensor) -> torch.Tensor:
    """`[B, C, ..., W]` as `[B, H, W, C]`."""
    return (x if x.dim() == 4 else x.unsqueeze(2)).permute(0, 2, 3, 1)


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("way", IMPLEMENTATIONS)
def test_every_way_is_the_convolution_of_each_row(way: str, name: str, gap: int):
    make, shape = LAYERS[name]
    layers = [make().double() for _ in range(ROWS)]
    form = ConvolutionSpec.of(layers[0], shape)
    if form.groups > 1 and way == "unfolded":
        return
    xs = [torch.randn((BATCH, *shape), dtype=torch.float64, requires_grad=True) for _ in layers]
    ys = [layer(x) for layer, x in zip(layers, xs, strict=True)]
    slopes = [torch.randn_like(y) for y in ys]
    torch.autograd.backward(ys, slopes)

    def lines(values: list[tuple[torch.Tensor, torch.Tensor | None]]) -> torch.Tensor:
        rows = []
        for weight, bias in values:
            weight = weight if weight.dim() == 4 else weight.unsqueeze(2)
            flat = weight.permute(0, 2, 3, 1).flatten(1)
            rows.append(flat if bias is None else torch.cat([flat, bias[:, None]], dim=1))
        return torch.stack(rows).detach()

    entries = lines([(layer.weight, layer.bias) for layer in layers])
    wide = torch.zeros((ROWS, 7 + entries[0].numel()), dtype=torch.float64)  # rows that hold other entries, too
    padded = torch.zeros((*entries.shape[:2], entries.shape[2] + gap), dtype=torch.float64)
    held, found = (
        padded.clone()[..., : entries.shape[2]] if gap else wide.clone()[:, 7:].view(entries.shape) for _ in range(2)
    )
    held.copy_(entries)
    ours = IMPLEMENTATIONS[way](form, BatchedContext(held, found, {}, BATCH, 2048.0, True, None))
    given, asked = torch.stack([images(x) for x in xs]).detach(), torch.stack([images(slope) for slope in slopes])
    grads = [x.grad for x in xs if x.grad is not None]
    for _ in range(2):  # nothing is left of the first pass
        y, x = ours.forward(given), ours.backward(asked)
        torch.testing.assert_close(y, torch.stack([images(y) for y in ys]), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(x, torch.stack([images(x) for x in grads]), rtol=1e-12, atol=1e-12)
    wanted = lines([(layer.weight.grad, None if layer.bias is None else layer.bias.grad) for layer in layers])
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_way_follows_from_the_shapes():
    small = ConvolutionSpec.of(nn.Conv2d(3, 8, 4, padding=1), (3, 32, 32))
    assert (small.patch_size, small.entries_per_output, small.output_size, small.im2col_floats) == (
        48,
        49,
        (31, 31),
        31 * 31 * 49,
    )
    chosen = partial(choose_implementation, rounds=False)
    assert chosen(small, 20, 2048.0) == "unfolded"
    assert chosen(small, 20, 10.0) == "separate"  # 20 * 47,089 floats of 4 bytes are 3.8 MB, more than a quarter
    wide = ConvolutionSpec.of(nn.Conv2d(64, 64, 3), (64, 8, 8))  # 576 numbers a patch
    assert chosen(wide, 20, 2048.0) == "unfolded"
    assert chosen(wide, 20, 2048.0, rounds=True) == "unfolded"  # 36 pixels an image
    assert chosen(wide, 32, 2048.0, rounds=True) == "separate"
    assert chosen(small, 20, 2048.0, rounds=True) == "unfolded"
    assert chosen(ConvolutionSpec.of(nn.Conv2d(4, 4, 3, groups=2), (4, 8, 8)), 20, 2048.0) == "grouped"


def test_a_sum_over_many_pixels_is_taken_in_pieces():
    spec = ConvolutionSpec.of(nn.Conv2d(2, 3, 3), (2, 16, 16))
    entries, x = torch.randn((ROWS, 3, 19), dtype=torch.float64), torch.randn((ROWS, 4, 16, 16, 2), dtype=torch.float64)
    grad = torch.randn((ROWS, 4, 14, 14, 3), dtype=torch.float64)
    layer = Im2col(spec, BatchedContext(entries, torch.zeros_like(entries), {}, 4, 2048.0, False, None))
    assert layer.pieces == 4  # 784 pixels, of which each piece has 196
    layer.forward(x)
    layer.backward(grad)
    in_one = torch.bmm(grad.flatten(1, 3).transpose(1, 2), layer.columns.flatten(1, 3))
    torch.testing.assert_close(layer.grads, in_one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("terms", "sizes", "pieces"),
    [(100, (1, 8, 8), 1), (19_220, (6, 8, 49), 124), (19_220, (100, 8, 49), 10), (200, (10, 512, 4609), 1)],
)
def test_the_fewest_pieces_that_keep_a_gpu_busy(terms: int, sizes: tuple[int, int, int], pieces: int):
    """19,220 is 4 x 5 x 31 x 31: of 124 pieces, each has 155 terms; six rows of 8 x 49 are 12 tiles."""
    assert choose_pieces(terms, sizes) == pieces


def test_the_rule_is_what_was_measured():
    """In float32 no way is more than a tenth faster, with rounded products none takes less than half the time."""
    with MEASURED.open() as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        times = {way: float(line[way]) for way in IMPLEMENTATIONS}
        most = 1.1 if line["precision"] == "float32" else 2
        assert times[line["chosen"]] <= most * min(times.values()), line
    assert len(lines) == 99
