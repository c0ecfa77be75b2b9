"""Additive secret shares in the ring of the integers modulo 2^64, and the mean that partners compute from them.

Encoding: a number x is the whole number nearest to 2^f x, its negatives as two's complement. Of P shares all but the
last are words of a cryptographic generator and the last is what is missing, so any P - 1 of them are uniform and
independent of the secret, while all of them add up to it. Partners add the shares that they hold, and the sums of their
sums are opened: masks cancel exactly, because unsigned words wrap around, so no trace of a mask is in the result.

Client k shares w_k u_k and its weight w_k, so that nobody learns how many examples it has. Opened are S and W, the sums
over C clients of both, times 2^f; the mean is S / W. Next to the true mean m = sum(w u) / sum(w) of an entry: each term
of S is rounded by 1/2 at most, and so is each term of W unless the weights are whole. Hence

    |S - 2^f sum(w u)| <= C / 2 and |W - 2^f sum(w)| <= C / 2, so |S / W - m| = |S - W m| / W <= C (1 + |m|) / (2 W),

where W >= 2^f C if no weight is below 1: half a step 2^-f for whole weights (the part with |m| is not there), a step
for others where |m| <= 1. Float64's own rounding, some 2^-53 of the largest update, comes on top.

Legend: P partners, C clients, D entries.
"""

import ssl

import numpy as np
import torch

WORDS = 2**18  # that the partners hold at a time: few enough for a core's cache
HEADROOM = 62  # sums stay below 2^62 before rounding, which is at most half a word for each client


def encode(values: np.ndarray, fractional_bits: int) -> np.ndarray:
    """The ring's words, uint64, for these float64 values, which must lie within `largest`."""
    return np.rint(np.ldexp(values, fractional_bits)).astype(np.int64).view(np.uint64)


def decode(words: np.ndarray, fractional_bits: int) -> np.ndarray:
    """The float64 values that these words stand for."""
    return np.ldexp(words.view(np.int64).astype(np.float64), -fractional_bits)


def largest(clients: int, fractional_bits: int) -> float:
    """The size that no value may exceed, so that the sum over so many clients stays in the ring."""
    return 2.0 ** (HEADROOM - fractional_bits) / clients


def share(secret: np.ndarray, partners: int) -> np.ndarray:
    """What each partner gets of the words `secret [C, D]`, uint64 [P, C, D]; never the same twice.

    OpenSSL's generator takes a quarter of the time of `os.urandom`, and like it reseeds in forked processes.
    """
    views = np.empty((partners, *secret.shape), dtype=np.uint64)
    words = np.frombuffer(ssl.RAND_bytes(8 * (partners - 1) * secret.size), dtype=np.uint64)
    views[:-1] = words.reshape(partners - 1, *secret.shape)
    np.subtract(secret, views[:-1].sum(axis=0), out=views[-1])
    return views


def opened_sum(views: np.ndarray, complete: np.ndarray) -> np.ndarray:
    """The sum `[D]` of the secrets of the clients that are `complete [C]`, from each partner's own sum of its view."""
    sums = views.sum(axis=1) if complete.all() else views[:, complete].sum(axis=1)
    return sums.sum(axis=0)


def secure_mean(delta: torch.Tensor, weight: np.ndarray, heard: np.ndarray, fractional_bits: int) -> torch.Tensor:
    """The mean `[D]` of `delta [C, D]` by `weight [C]`, float64, over the clients of whom every partner `heard [P, C]`.

    Their weights must not all vanish. The columns are shared out in blocks that bound the memory.
    """
    partners, clients = heard.shape
    complete = np.logical_and.reduce(heard)

    def total(values: np.ndarray) -> np.ndarray:
        views = share(encode(values, fractional_bits), partners)
        return decode(opened_sum(views, complete), fractional_bits)

    divisor = total(weight[:, None])
    mean = np.empty(delta.shape[1])
    width = max(1, WORDS // (partners * clients))
    for start in range(0, len(mean), width):
        block = delta[:, start : start + width].double().cpu().numpy()
        mean[start : start + width] = total(weight[:, None] * block) / divisor
    return torch.from_numpy(mean).to(delta.device)
