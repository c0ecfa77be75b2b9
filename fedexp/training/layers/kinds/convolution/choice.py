"""How the convolutions of several rows are computed: rules that were measured on a GPU.

They go by shapes and precision alone, so that equal runs take equal ways (`scripts/bench_gpu.py convolutions`).
Legend: R rows, O outputs, I entries of a kernel.
"""

import math

from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec

WIDE_PATCH, MANY_OUTPUTS, MANY_PIXELS = 256, 64, 1024  # where tensor cores have enough work in a row's own convolution
TILE, ENOUGH_TILES, MIN_TERMS = 32, 1024, 128  # of a matrix product: its tiles' sides, how many fill a GPU, their terms


def choose_implementation(spec: ConvolutionSpec, batch: int, memory_mb: float, *, rounds: bool) -> str:
    """Chooses the implementation of a convolution by its shapes and the memory available for rows.

    `rounds` says whether products are rounded, to TF32 or bfloat16.

    Groups of channels are groups of the rows' groups. Images whose patches alone, of one row, would take a quarter of
    the memory are convolved row by row; so are many pixels with wide patches and many outputs where tensor cores
    multiply, which cuDNN's own convolutions use better. All others are unfolded.
    """
    if spec.groups > 1:
        return "grouped"
    fits = 4 * batch * spec.im2col_floats <= memory_mb * 1e6 / 4
    is_large = spec.patch_size >= WIDE_PATCH and spec.outputs >= MANY_OUTPUTS
    is_large = is_large and batch * math.prod(spec.output_size) >= MANY_PIXELS
    return "unfolded" if fits and not (rounds and is_large) else "separate"


def choose_pieces(terms: int, sizes: tuple[int, int, int]) -> int:
    """Chooses in how many equal pieces a product sums so many terms, given the `sizes` of its result, `[R, O, I]`.

    The fewest that keep a GPU busy, while each piece has enough terms.
    """
    rows, height, width = sizes
    tiles = rows * math.ceil(height / TILE) * math.ceil(width / TILE)
    divisors = [pieces for pieces in range(1, terms // MIN_TERMS + 1) if terms % pieces == 0] or [1]
    return next((pieces for pieces in divisors if pieces * tiles >= ENOUGH_TILES), divisors[-1])
