"""A lake of a given size, and beside it PostgreSQL with the same rows: answers, size, HTTP."""

from __future__ import annotations

import itertools
import shutil
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psycopg

from lake.settings import Settings
from lake.snapshot import open_snapshot
from tests.bench.access import Access
from tests.bench.arguments import draw_arguments
from tests.bench.figure import Figure, at_least, at_most
from tests.bench.http import measure_http
from tests.bench.lakegen import make_lake
from tests.bench.peer.asker import Peer
from tests.bench.peer.store import load_peer, open_rows
from tests.bench.postgres import running_server
from tests.bench.questions import ask_questions, list_questions

if TYPE_CHECKING:
    from pathlib import Path

BYTES_PER_TX, PEER_SIZES, DEEP_PAGE = 400, 4, 2
PEER_BYTES_PER_TX = 4_000
"""Room that PostgreSQL needs, with what it writes while it loads."""

ROWS_PER_S = 15_000_000


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
    """Make a lake, ask the questions of it and of the peer, load its server; then remove it."""
    size = f"{transactions:,} transactions"
    lake_dir = scratch / "lake"
    began_s = time.process_time()
    make_lake(lake_dir, transactions=transactions, seed=seed)
    made_s = time.process_time() - began_s
    with open_rows(lake_dir, scratch) as rows:
        draw = draw_arguments(rows, samples, seed)
    figures = []
    with ExitStack() as stack:
        session, loaded = None, None
        if peer and shutil.disk_usage(scratch).free > transactions * PEER_BYTES_PER_TX:
            address = stack.enter_context(running_server(scratch))
            loaded = load_peer(address, lake_dir, scratch)
            session = Peer(stack.enter_context(psycopg.connect(address, autocommit=True)))
        figures += describe_sizes(lake_dir, transactions, loaded, made_s, draw.rows)
        answers = ask_questions(
            list_questions(draw, samples),
            Access(lake_dir, Settings()),
            session,
            area=f"look-ups, {size}",
            budget_s=budget_s,
        )
        figures += [*answers, *derive_figures(answers, draw.rows["transactions"])]
    if http:
        figures += measure_http(lake_dir, draw, seconds=seconds)
    shutil.rmtree(lake_dir)
    return figures


def describe_sizes(
    lake_dir: Path,
    transactions: int,
    loaded: dict[str, float] | None,
    made_s: float,
    rows: dict[str, int],
) -> list[Figure]:
    """Return what the rows take on disk, on both sides, and what bringing them there took."""
    area = f"size and load, {transactions:,} transactions"
    snapshot = open_snapshot(lake_dir, check_digests=False)
    bare = sum(file.bytes for files in snapshot.files.values() for file in files)
    whole = bare + sum(file.bytes for file in getattr(snapshot, "runs", ()))
    peer_bytes = loaded["bytes"] / transactions if loaded else None
    figures = [
        Figure(
            area=area,
            name="lake, Parquet alone",
            unit="bytes/tx",
            value=bare / transactions,
            peer=peer_bytes,
            ratio=loaded["bytes"] / bare if loaded else None,
            targets={"value": at_most(BYTES_PER_TX)},
            note=", ".join(f"{count:,} {name}" for name, count in rows.items()),
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
    if loaded:
        figures.append(
            Figure(
                area=area,
                name="making the lake, generator included; peer: copy and indexes",
                unit="s",
                value=made_s,
                peer=loaded["copy_s"] + loaded["indexes_s"],
            )
        )
    return figures


def derive_figures(answers: list[Figure], transactions: int) -> list[Figure]:
    """Return what follows from several answers: deep pages to first ones, rows per second."""
    by_name = {figure.name: figure for figure in answers}
    first = by_name["account, last 100, hot"]
    derived = [
        Figure(
            area=first.area,
            name=f"{name}, to page one",
            unit="x",
            value=figure.value / first.value,
            peer=figure.peer / first.peer if figure.peer and first.peer else None,
            targets={"value": at_most(DEEP_PAGE)},
        )
        for name, figure in by_name.items()
        if name.startswith("account, 100 ")
    ]
    by_hour = by_name["all by hour and exit code"]
    derived.append(
        Figure(
            area=first.area,
            name="all by hour and exit code, speed",
            unit="rows/s/core",
            value=transactions / by_hour.value * 1000,
            peer=transactions / by_hour.peer * 1000 if by_hour.peer else None,
            targets={"value": at_least(ROWS_PER_S)},
        )
    )
    return derived


def compare_sizes(figures: list[Figure], sizes: list[int]) -> list[Figure]:
    """Return how every answer grows from each lake to the next larger one."""
    grown = []
    for small, large in itertools.pairwise(sizes):
        before = {
            figure.name: figure
            for figure in figures
            if figure.area == f"look-ups, {small:,} transactions"
        }
        grown += [
            Figure(
                area=f"growth from {small:,} to {large:,} transactions",
                name=figure.name,
                unit="x",
                value=figure.value / before[figure.name].value,
                peer=_grow(before[figure.name].peer, figure.peer),
            )
            for figure in figures
            if figure.area == f"look-ups, {large:,} transactions"
            and figure.name in before
            and figure.unit == "ms"
        ]
    return grown


def _grow(before: float | None, after: float | None) -> float | None:
    return after / before if before and after else None
