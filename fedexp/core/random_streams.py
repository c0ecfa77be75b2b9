"""Named random streams: every draw of a run comes from (seed, name, ...), never from a global generator."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio, odd


class _Key(ISeedSequence):
    """The key of a Philox generator. As its seed it saves the call to the system for entropy that nobody would use."""

    def __init__(self, digest: bytes) -> None:
        self.words = np.frombuffer(digest, "<u8").astype(np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """The two words of the key, `[2]`, whatever is asked: Philox asks for them as they are."""
        return self.words


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The generator of one named stream; equal names give equal draws on every machine.

    The key of the counter-based Philox generator is the BLAKE2b digest of the seed and the name, so adding a
    stream cannot shift another.
    """
    key = hashlib.blake2b(repr((seed, *name)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(cast(Any, _Key(key))))


def streams(seed: int, *name: str | int, owner: np.ndarray) -> Iterator[np.random.Generator]:
    """The generators of the streams (seed, name, k) for every k of `owner [n]`, one after another.

    All are one object that is given a key after the other, in a third of the time that `stream` takes: each is the
    named stream only until the next is asked for.
    """
    prefix = repr((seed, *name))[:-1].rstrip(",")
    return _streams(f"{prefix}, {k})" for k in owner.tolist())


def _streams(names: Iterable[str]) -> Iterator[np.random.Generator]:
    """The generators of the streams of these seeds and names, as `repr` writes them."""
    digests = [hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names]
    keys = np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, 2)
    generator = stream(0)
    bits = generator.bit_generator
    state = bits.state
    for key in keys:
        state["state"]["key"] = key
        bits.state = state  # which has no draws yet
        yield generator


def streams_by_round(seed: int, begun: np.ndarray, name: str, owner: np.ndarray) -> Iterator[np.random.Generator]:
    """The generators of the streams (seed, b, name, k) for each k of `owner [n]` and its round b of `begun [n]`.

    Each is the named stream only until the next is asked for.
    """
    pairs = zip(begun.tolist(), owner.tolist(), strict=True)
    return _streams(f"({seed!r}, {number}, {name!r}, {k})" for number, k in pairs)


def indexed_draws(seed: int, *name: str | int, index: Sequence[np.ndarray | int]) -> np.ndarray:
    """A uniform draw `[n]` for each row of some whole numbers `index`, each `[n]`; the draws of equal rows are equal.

    They do not depend on which rows are asked for, so a process in time can be looked at anywhere. The digest of the
    seed and the name goes through the finaliser of SplitMix64 (Steele, Lea & Flood 2014) with one number after another.
    """
    key = hashlib.blake2b(repr((seed, *name)).encode(), digest_size=16).digest()
    state, increment = np.frombuffer(key, "<u8").astype(np.uint64)
    with np.errstate(over="ignore"):
        for numbers in index:
            state = _finalise(state ^ (np.asarray(numbers).astype(np.uint64) * _GOLDEN + increment))
    return (state >> np.uint64(11)) * 2.0**-53


def _finalise(state: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 on words of 64 bits."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def client_draws(seed: int, *name: str | int, owner: np.ndarray, clients: int) -> np.ndarray:
    """Four uniform draws `[n, 4]` for each client of `owner [n]`; they do not depend on who else is asked for.

    Client k's draws are the k-th counter of the named Philox stream: the generator jumps to few clients; for many, it
    draws for all `clients` and picks theirs.
    """
    generator = stream(seed, *name)
    if len(owner) * 100 > clients:
        return generator.random((clients, 4))[owner]
    draws, position = np.empty((len(owner), 4)), 0
    bits = generator.bit_generator
    assert isinstance(bits, np.random.Philox)
    for index in np.argsort(owner, kind="stable").tolist():
        bits.advance(int(owner[index]) - position)
        draws[index] = generator.random(4)
        position = int(owner[index]) + 1
    return draws
