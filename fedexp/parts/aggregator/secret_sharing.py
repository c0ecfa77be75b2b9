"""Additive secret shares in the ring of the integers modulo 2^64, and the mean that partners compute from them.

Encoding: a number x becomes the integer nearest to 2^f x, in two's complement. Of P shares all but the last are words
of a cryptographic generator, and the last is the secret minus their sum. So any P - 1 shares are uniform and
independent of the secret, while all of them add up to it. Partners add the shares that they hold, and only the total of
their sums is opened: masks cancel exactly, because unsigned words wrap around.

Client k shares w_k u_k and its weight w_k, so that nobody learns how many examples it has. The sums S and W of both
over C clients, times 2^f, are opened; the mean is S / W. The true mean of an entry is m = sum(w u) / sum(w). Each term
of S is rounded by at most 1/2, and so is each term of W unless the weights are integers. Hence

    |S - 2^f sum(w u)| <= C / 2 and |W - 2^f sum(w)| <= C / 2, so |S / W - m| = |S - W m| / W <= C (1 + |m|) / (2 W),

where W >= 2^f C if no weight is below 1. So the error is at most half a step 2^-f for integer weights (without the term
|m|), and a step for others where |m| <= 1; to this add float64's own rounding, about 2^-53 of the largest update.

Legend: P partners, C clients, D entries.
"""

import ssl

import numpy as np
import torch

WORDS = 2**18  # that the partners hold at a time; they fit into a core's cache
HEADROOM = 62  # sums stay below 2^62 before rounding, which adds at most 1/2 for each client


def encode(values: np.ndarray, fractional_bits: int) -> np.ndarray:
    """The ring's words, uint64, for float64 values (any shape) of at most `max_summand` in size."""
    return np.rint(np.ldexp(values, fractional_bits)).astype(np.int64).view(np.uint64)


def decode(words: np.ndarray, fractional_bits: int) -> np.ndarray:
    """The float64 values that these words (any shape) encode."""
    return np.ldexp(words.view(np.int64).astype(np.float64), -fractional_bits)


def max_summand(clients: int, fractional_bits: int) -> float:
    """The largest absolute value with which the sum over this many clients stays in the ring."""
    return 2.0 ** (HEADROOM - fractional_bits) / clients


def split_secret(secret: np.ndarray, partners: int) -> np.ndarray:
    """Each partner's shares of the words `secret [C, D]`, uint64 [P, C, D]; different at every call.

    OpenSSL's generator takes a quarter of the time of `os.urandom`, and like it reseeds in forked processes.
    """
    views = np.empty((partners, *secret.shape), dtype=np.uint64)
    words = np.frombuffer(ssl.RAND_bytes(8 * (partners - 1) * secret.size), dtype=np.uint64)
    views[:-1] = words.reshape(partners - 1, *secret.shape)
    np.subtract(secret, views[:-1].sum(axis=0), out=views[-1])
    return views


def reconstruct_sum(views: np.ndarray, complete: np.ndarray) -> np.ndarray:
    """The sum `[D]` of the secrets of the clients in the mask `complete [C]`, from the partners' `views [P, C, D]`.

    Each partner sums its own view first.
    """
    sums = views.sum(axis=1) if complete.all() else views[:, complete].sum(axis=1)
    return sums.sum(axis=0)


def secure_mean(delta: torch.Tensor, weight: np.ndarray, delivered: np.ndarray, fractional_bits: int) -> torch.Tensor:
    """The mean `[D]` of `delta [C, D]` by `weight [C]`, float64, of clients with all of `delivered [P, C]`.

    Their weights must not all be 0. Columns are processed in blocks, to bound the memory.
    """
    partners, clients = delivered.shape
    complete = np.logical_and.reduce(delivered)

    def total(values: np.ndarray) -> np.ndarray:
        views = split_secret(encode(values, fractional_bits), partners)
        return decode(reconstruct_sum(views, complete), fractional_bits)

    divisor = total(weight[:, None])
    mean = np.empty(delta.shape[1])
    width = max(1, WORDS // (partners * clients))
    for start in range(0, len(mean), width):
        block = delta[:, start : start + width].double().cpu().numpy()
        mean[start : start + width] = total(weight[:, None] * block) / divisor
    return torch.from_numpy(mean).to(delta.device)
