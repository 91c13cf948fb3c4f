"""Random numbers per example: counter-based streams that draw the same in the plain loop, in any batch, on any target.

A stream is a key and a count, a plain record: its methods are written for one example and compile like any other. The
invariant: the k-th number of a stream is a function of its key and k alone. The bits are those of SplitMix64 (Steele,
Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014) at place k of the key's sequence.
Must not know the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53


@dataclass
class Stream:
    """One example's stream of random numbers. Drawing moves `count` on.

    Numbers are float64 (NumPy) or int64; `size`, where it is given, makes a vector of that many draws.
    """

    key: np.uint64
    count: np.uint64

    def bits(self) -> np.uint64:
        """64 random bits."""
        self.count = np.add(self.count, np.uint64(1))
        z = np.add(self.key, np.multiply(self.count, GAMMA))
        z = np.multiply(np.bitwise_xor(z, np.right_shift(z, np.uint64(30))), FIRST)
        z = np.multiply(np.bitwise_xor(z, np.right_shift(z, np.uint64(27))), SECOND)
        return np.bitwise_xor(z, np.right_shift(z, np.uint64(31)))

    def many_bits(self, size: int) -> Any:
        """64 random bits, `size` times: uint64[size]."""
        places = np.add(np.arange(1, size + 1).astype(np.uint64), self.count)
        self.count = np.add(self.count, np.uint64(size))
        z = np.add(np.multiply(places, GAMMA), self.key)
        z = np.multiply(np.bitwise_xor(z, np.right_shift(z, np.uint64(30))), FIRST)
        z = np.multiply(np.bitwise_xor(z, np.right_shift(z, np.uint64(27))), SECOND)
        return np.bitwise_xor(z, np.right_shift(z, np.uint64(31)))

    def random(self, size: Any = None) -> Any:
        """Uniform in [0, 1)."""
        if size is None:
            return np.multiply(np.float64(np.right_shift(self.bits(), np.uint64(11))), UNIT)
        return np.multiply(np.right_shift(self.many_bits(size), np.uint64(11)).astype(np.float64), UNIT)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Uniform in [low, high)."""
        return low + (high - low) * self.random(size)

    def normal(self, mean: float = 0.0, deviation: float = 1.0, size: Any = None) -> Any:
        """Normal, by the method of Box and Muller (1958): two uniform numbers for each."""
        radius = np.sqrt(-2.0 * np.log1p(-self.random(size)))
        angle = np.cos(2.0 * np.pi * self.random(size))
        return mean + deviation * radius * angle

    def exponential(self, scale: float = 1.0, size: Any = None) -> Any:
        """Exponential with the given mean."""
        return -scale * np.log1p(-self.random(size))

    def integers(self, low: int, high: int, size: Any = None) -> Any:
        """Integers in [low, high), int64. Raises ValueError where there are none."""
        if high <= low:
            raise ValueError("low >= high")
        return low + np.floor((high - low) * self.random(size)).astype(np.int64)

    def permutation(self, size: int) -> Any:
        """The numbers 0 ... size - 1 in random order, int64[size]."""
        return np.argsort(self.random(size), kind="stable")


def rngs(seed: int, n: int) -> list[Stream]:
    """n independent streams: stream i of a seed is the same for every n > i.

    Pass the list as a mapped argument, or its items to the plain function. Raises ValueError for a negative n.
    """
    if n < 0:
        raise ValueError("the number of streams must not be negative")
    root = Stream(np.uint64(seed % 2**64), np.uint64(0))
    first, second = root.many_bits(n), Stream(np.uint64((seed + 0x5851F42D4C957F2D) % 2**64), np.uint64(0)).many_bits(n)
    return [Stream(np.bitwise_xor(a, np.right_shift(b, np.uint64(1))), np.uint64(0)) for a, b in zip(first, second)]
