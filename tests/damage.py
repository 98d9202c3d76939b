"""Damages bytes and files."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random


def throw(few: int, seed: int) -> Iterator[Random]:
    """Yield a dice ``few`` times, or as often and with the seed that ``make fuzz`` sets."""
    dice = Random(int(os.environ.get("FUZZ_SEED", seed)))  # noqa: S311 - repeatable, no secret
    for _ in range(int(os.environ.get("FUZZ_CASES", few))):
        yield dice


def flip(data: bytes, at: int, bits: int = 1) -> bytes:
    """Return data with some bits of a byte flipped."""
    flipped = bytearray(data)
    flipped[at] ^= bits
    return bytes(flipped)


def flip_bit(data: bytes, bit: int) -> bytes:
    """Return data with one bit flipped, counted from the lowest of the first byte."""
    return flip(data, bit // 8, 1 << bit % 8)


def flip_any(data: bytes, dice: Random) -> bytes:
    """Return data with any one bit flipped."""
    return flip(data, dice.randrange(len(data)), 1 << dice.randrange(8))


def flip_file(path: Path, at: int | None = None, bits: int = 1) -> None:
    """Flip bits of a byte of a file, by default of the one in its middle."""
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) // 2 if at is None else at, bits))
