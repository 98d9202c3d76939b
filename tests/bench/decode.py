"""Benchmarks decoding of block bytes to rows: transactions a second on a core, by decoder.

``python -m tests.bench.decode DECODER FOLDER`` prints the figures of one decoder as JSON. Each
decoder runs in its own process, because the choice is made at import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.blocks import ROOT, read_block_sets
from tests.bench.chain import LARGE, Chain, Moulds
from tests.bench.figure import Figure, at_least

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.blocks import RawBlock

RUNS_S = 3.0
"""Seconds of CPU spent on one set of blocks, in as many runs as fit."""

LINKED_BLOCKS = 20
"""A chunk of ingest holds about so many large blocks."""

PYTHON_TARGET, NATIVE_TARGET, NATIVE_RATIO = 10_000, 250_000, 25

Speeds = dict[str, dict[str, float]]


def measure_decoders(scratch: Path, *, quick: bool) -> list[Figure]:
    """Return a figure for each decoder and set of blocks; absent decoders are left out."""
    decoders = ("native", "python", "pytoniq-core")
    speeds = {name: _measure_apart(name, scratch, quick=quick) for name in decoders}
    figures = []
    for decoder, by_set in speeds.items():
        for name, speed in by_set.items():
            slower = speeds["pytoniq-core" if decoder == "python" else "python"].get(name)
            figures.append(_make_figure(decoder, name, speed, slower))
    return figures


def _make_figure(
    decoder: str, name: str, speed: dict[str, float], slower: dict[str, float] | None
) -> Figure:
    is_large = name.startswith("large blocks")
    targets = {}
    if is_large and decoder == "python":
        targets = {"value": at_least(PYTHON_TARGET)}
    if is_large and decoder == "native":
        targets = {"value": at_least(NATIVE_TARGET), "ratio": at_least(NATIVE_RATIO)}
    per_s, transactions = speed["transactions_per_s"], speed["transactions"]
    compared = decoder != "pytoniq-core" and slower is not None
    return Figure(
        area="decode, file hash checked",
        name=f"{decoder}: {name}, {transactions:,.0f} transactions",
        unit="tx/s/core",
        value=per_s,
        peer=slower["transactions_per_s"] if compared and slower else None,
        ratio=per_s / slower["transactions_per_s"] if compared and slower else None,
        targets=targets,
        note=f"{speed['bytes_per_s'] / 1e6:.3g} MB/s"
        + (f"; {speed['refused']:.0f} blocks left out, which it refuses" * (speed["refused"] > 0)),
    )


def _measure_apart(decoder: str, scratch: Path, *, quick: bool) -> Speeds:
    environment = os.environ | {"TONLAKE_NATIVE": "1" if decoder == "native" else "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.decode", decoder, str(scratch), str(int(quick))],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
    )
    speeds: Speeds = json.loads(done.stdout)
    return speeds


def has_native() -> bool:
    """Return whether the product finds its native decoder."""
    try:
        from tonlake.ingest.decode.native import is_used  # noqa: PLC0415
    except ImportError:
        return False
    return is_used()


def measure_decoder(decoder: str, scratch: Path, *, quick: bool) -> Speeds:
    """Return transactions and bytes per second of CPU for each set of blocks."""
    if decoder == "native" and not has_native():
        return {}
    decode = _decode_by_pytoniq if decoder == "pytoniq-core" else _decode
    if decoder == "python" and has_native():
        raise ValueError("the Python decoder is asked for with TONLAKE_NATIVE=0")
    sets = read_block_sets(scratch)
    if decoder == "pytoniq-core":
        # The packages take a minute, and the large block as long as everything else.
        wanted = ("block of each kind",) if quick else ("block of each kind", "large block")
        sets = {name: blocks for name, blocks in sets.items() if name in (*wanted, "demo node")}
    else:
        chain = Chain(Moulds(scratch), LARGE)
        sets["large blocks, linked copies"] = [
            raw for _ in range(LINKED_BLOCKS // (4 if quick else 1)) for raw in chain.grow().blocks
        ]
    runs_s = 0 if decoder == "pytoniq-core" else RUNS_S / (6 if quick else 1)
    speeds = {}
    for name, blocks in sets.items():
        taken = _accept(blocks) if decoder == "pytoniq-core" else blocks
        if taken:
            refused = len(blocks) - len(taken)
            speeds[name] = _measure_set(decode, taken, runs_s=runs_s) | {"refused": refused}
    return speeds


def _measure_set(
    decode: Callable[[list[RawBlock]], int | None], blocks: list[RawBlock], *, runs_s: float
) -> dict[str, float]:
    transactions = _decode(blocks)
    best_s, spent_s, runs = float("inf"), 0.0, 0
    while not runs or spent_s < runs_s:
        began_s = time.process_time()
        decode(blocks)
        took_s = time.process_time() - began_s
        best_s, spent_s, runs = min(best_s, took_s), spent_s + took_s, runs + 1
    return {
        "transactions": transactions,
        "transactions_per_s": transactions / best_s,
        "bytes_per_s": sum(len(raw.data) for raw in blocks) / best_s,
    }


def _decode(blocks: list[RawBlock]) -> int:
    """Decode to all base tables, as ingest does: file and root hash verified, rows in Arrow."""
    from tonlake.ingest.blocks import McBundle  # noqa: PLC0415
    from tonlake.ingest.decode.block.block import decode_bundles  # noqa: PLC0415

    rows: int = decode_bundles([McBundle(1, tuple(blocks))])["transactions"].num_rows
    return rows


def _accept(blocks: list[RawBlock]) -> list[RawBlock]:
    """Return the blocks that the other library can decode: it rejects some masterchain blocks."""
    taken = []
    for raw in blocks:
        try:
            _decode_by_pytoniq([raw])
        except Exception:  # noqa: BLE001, S112 - whatever it raises, it has no such block
            continue
        taken.append(raw)
    return taken


def _decode_by_pytoniq(blocks: list[RawBlock]) -> None:
    """Decode to the library's own objects."""
    from hashlib import sha256  # noqa: PLC0415

    from pytoniq_core.boc.cell import Cell  # noqa: PLC0415
    from pytoniq_core.tlb.block import Block  # noqa: PLC0415

    for raw in blocks:
        if sha256(raw.data).digest() != raw.id.file_hash:
            raise ValueError(f"block {raw.id} has wrong bytes")
        Block.deserialize(Cell.one_from_boc(raw.data).begin_parse())


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(measure_decoder(sys.argv[1], Path(sys.argv[2]), quick=sys.argv[3] == "1"))
    )
