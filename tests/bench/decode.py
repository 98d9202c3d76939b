"""Benchmarks decoding of block bytes to rows: transactions a second on a core, by decoder.

``python -m tests.bench.decode DECODER FOLDER`` prints the figures of one decoder as JSON. Each
decoder runs in its own process, because the choice is made at import.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.figure import Figure, at_least
from tests.made.blocks import ROOT, read_block_sets
from tests.made.chain import LARGE, Chain, Moulds
from tonlake.ingest.blocks import RawBlock

RUNS_S = 3.0
"""Seconds of CPU spent on one set of blocks, in as many runs as fit."""

LINKED_BLOCKS = 20
"""About the number of large blocks in a chunk of ingest."""

PYTHON_TARGET, NATIVE_TARGET, NATIVE_RATIO = 10_000, 250_000, 25

Speeds = dict[str, dict[str, float]]


def measure_decoders(scratch: Path, *, quick: bool) -> list[Figure]:
    """Return a figure for each decoder and set of blocks; an absent decoder is left out."""
    speeds = {name: _measure_apart(name, scratch, quick=quick) for name in ("native", "python")}
    return [
        _make_figure(decoder, name, speed, speeds["python"].get(name))
        for decoder, by_set in speeds.items()
        for name, speed in by_set.items()
    ]


def _make_figure(
    decoder: str, name: str, speed: dict[str, float], python: dict[str, float] | None
) -> Figure:
    per_s, is_native = speed["transactions_per_s"], decoder == "native"
    targets = {}
    if name.startswith("large blocks"):
        targets = {"value": at_least(NATIVE_TARGET if is_native else PYTHON_TARGET)}
        if is_native:
            targets["ratio"] = at_least(NATIVE_RATIO)
    slower = python["transactions_per_s"] if is_native and python else None
    return Figure(
        area="decode, file hash checked",
        name=f"{decoder}: {name}, {speed['transactions']:,.0f} transactions",
        unit="tx/s/core",
        value=per_s,
        peer=slower,
        ratio=per_s / slower if slower else None,
        targets=targets,
        note=f"{speed['bytes_per_s'] / 1e6:.3g} MB/s",
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
    if decoder == "python" and has_native():
        raise ValueError("the Python decoder is asked for with TONLAKE_NATIVE=0")
    chain = Chain(Moulds(scratch), LARGE)
    sets = read_block_sets(scratch)
    sets["large blocks, linked copies"] = [
        raw for _ in range(LINKED_BLOCKS // (4 if quick else 1)) for raw in chain.grow().blocks
    ]
    runs_s = RUNS_S / (6 if quick else 1)
    return {name: _measure_set(blocks, runs_s=runs_s) for name, blocks in sets.items()}


def _measure_set(blocks: list[RawBlock], *, runs_s: float) -> dict[str, float]:
    transactions = _decode(blocks)
    best_s, spent_s, runs = float("inf"), 0.0, 0
    while not runs or spent_s < runs_s:
        began_s = time.process_time()
        _decode(blocks)
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


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(measure_decoder(sys.argv[1], Path(sys.argv[2]), quick=sys.argv[3] == "1"))
    )
