"""Benchmarks a lake of a given size beside PostgreSQL with the same rows: answers, size, HTTP."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import psycopg

from tests.bench.access import Access
from tests.bench.arguments import draw_arguments
from tests.bench.figure import Figure, at_least, at_most
from tests.bench.page import measure_http
from tests.bench.peer.asker import Peer
from tests.bench.peer.store import load_peer, open_rows
from tests.bench.postgres import find_server, running_server
from tests.bench.questions import ask_questions, list_questions
from tests.made.rows import make_lake
from tonlake.api.settings import Settings
from tonlake.ingest.derive.stages import rebuild
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.snapshot import open_snapshot

BYTES_PER_TX, PEER_SIZES = 400, 4
PEER_BYTES_PER_TX = 5_000
"""Room that PostgreSQL needs, with what it writes while it loads."""


def measure_lake(
    scratch: Path,
    transactions: int,
    *,
    samples: int,
    seed: int,
    peer: bool,
    http: bool,
    seconds: int,
    budget_s: float,
) -> list[Figure]:
    """Create a lake, query it and the peer, load its server; then remove it."""
    size = f"{transactions:,} transactions"
    lake_dir = scratch / "lake"
    settings = Settings()
    make_lake(lake_dir, transactions=transactions, seed=seed)
    rebuild("traces", lake_dir, settings)
    rebuild_index(lake_dir, everything=True)
    with open_rows(lake_dir, scratch) as rows:
        draw = draw_arguments(rows, samples)
    figures = []
    with ExitStack() as stack:
        session, loaded = None, None
        free = shutil.disk_usage(scratch).free
        if peer and find_server() and free > transactions * PEER_BYTES_PER_TX:
            address = stack.enter_context(running_server(scratch))
            loaded = load_peer(address, lake_dir, scratch)
            session = Peer(stack.enter_context(psycopg.connect(address, autocommit=True)))
        figures += describe_sizes(lake_dir, transactions, loaded, draw.rows)
        figures += ask_questions(
            list_questions(draw, samples),
            Access(lake_dir, settings),
            session,
            area=f"look-ups, {size}",
            budget_s=budget_s,
        )
    if http:
        figures += measure_http(lake_dir, draw, seconds=seconds)
    shutil.rmtree(lake_dir)
    return figures


def describe_sizes(
    lake_dir: Path,
    transactions: int,
    loaded: dict[str, float] | None,
    rows: dict[str, int],
) -> list[Figure]:
    """Return the disk space of the rows on both sides."""
    area = f"size, {transactions:,} transactions"
    snapshot = open_snapshot(lake_dir, check_digests=False)
    tables = {name: sum(file.bytes for file in files) for name, files in snapshot.files.items()}
    bare = sum(tables.values())
    whole = bare + sum(file.bytes for file in snapshot.segments)
    peer_bytes = loaded["bytes"] / transactions if loaded else None
    return [
        Figure(
            area=area,
            name="transactions and messages, Parquet alone",
            unit="bytes/tx",
            value=(tables["transactions"] + tables["messages"]) / transactions,
            targets={"value": at_most(BYTES_PER_TX)},
            note=", ".join(f"{count:,} {name}" for name, count in rows.items()),
        ),
        Figure(
            area=area,
            name="all tables, Parquet alone",
            unit="bytes/tx",
            value=bare / transactions,
            peer=peer_bytes,
            ratio=loaded["bytes"] / bare if loaded else None,
            note=", ".join(
                f"{name} {size / transactions:.3g}" for name, size in tables.items() if size
            ),
        ),
        Figure(
            area=area,
            name="lake with all look-ups",
            unit="bytes/tx",
            value=whole / transactions,
            peer=peer_bytes,
            ratio=loaded["bytes"] / whole if loaded else None,
            targets={"ratio": at_least(PEER_SIZES)} if loaded else {},
        ),
    ]
