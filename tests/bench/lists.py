"""Benchmarks version 3 lists: the server's CPU for a page beside PostgreSQL's for its query."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psycopg

from tests.bench.clock import cpu_clock_of
from tests.bench.figure import Figure, at_least, at_most, percentile
from tests.bench.listed import CHAIN, DERIVED, UNIT, ListQuestion, draw_lists
from tests.bench.page import serving
from tests.bench.peer.asker import Peer
from tests.bench.peer.lists import STATEMENTS
from tests.bench.peer.store import DERIVED as DERIVED_TABLES
from tests.bench.peer.store import TABLES, load_peer, open_rows
from tests.bench.postgres import find_server, running_server
from tests.bench.process import run_ingest
from tests.made.blocks import DEMO, NETWORK_NODE, unpack_node

P99_MS = 20.0


class Cost(msgspec.Struct, frozen=True):
    """CPU milliseconds of each request, and the sizes of the answers."""

    cpu_ms: list[float]
    bytes: list[int]


def measure_network_lists(scratch: Path, *, samples: int, peer: bool) -> list[Figure]:
    """Request all lists of a recorded network with contracts and actions, or of the demo node."""
    node = unpack_node(NETWORK_NODE if NETWORK_NODE.exists() else DEMO, scratch / "network")
    lake_dir = scratch / "lake-network"
    run_ingest(node, lake_dir)
    with open_rows(lake_dir, scratch) as rows:
        questions = draw_lists(rows, CHAIN | DERIVED, samples)
    with ExitStack() as stack:
        session = None
        if peer and find_server():
            address = stack.enter_context(running_server(scratch))
            load_peer(address, lake_dir, scratch, (*TABLES, *DERIVED_TABLES))
            session = Peer(stack.enter_context(psycopg.connect(address, autocommit=True)))
        return measure_lists(lake_dir, questions, session, area="lists over HTTP, a node's lake")


def measure_lists(
    lake_dir: Path, questions: Sequence[ListQuestion], peer: Peer | None, *, area: str
) -> list[Figure]:
    """Send every question over HTTP without a cache, and its statement to the peer."""
    figures: list[Figure] = []
    with serving(lake_dir, cache_mib=0) as (address, pid):
        unit_ms = 0.0
        for question in questions:
            if not question.parameters:
                continue
            cost = _ask_server(address, pid, question)
            cpu_ms = percentile(cost.cpu_ms, 0.5)
            if question.name == UNIT:
                unit_ms = cpu_ms
            peer_ms = None if peer is None else _ask_peer(peer, question)
            figures.append(_describe(question, area, cost, unit_ms, peer_ms))
    return figures


def _ask_server(address: str, pid: int, question: ListQuestion) -> Cost:
    """Send one request after the other on one connection."""
    clock, cost = cpu_clock_of(pid), Cost([], [])
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        # Everything is requested twice: the first time reads the files and row groups.
        count = len(question.parameters)
        for number, parameters in enumerate([*question.parameters] * 2, start=-count):
            url = question.url(parameters)
            began_s = time.clock_gettime(clock)
            connection.request("GET", url)
            answer = connection.getresponse()
            text = answer.read()
            spent_ms = (time.clock_gettime(clock) - began_s) * 1000
            if answer.status != 200:
                raise ValueError(f"{url}: {answer.status} {text[:200].decode()}")
            if number >= 0:
                cost.cpu_ms.append(spent_ms)
                cost.bytes.append(len(text))
    return cost


def _ask_peer(peer: Peer, question: ListQuestion) -> float:
    """Return the median CPU milliseconds of the peer's session."""
    clock = cpu_clock_of(peer.pid)
    cpu_ms = []
    for parameters in [*question.parameters] * 2:
        began_s = time.clock_gettime(clock)
        peer.ask_list(STATEMENTS[question.name], parameters)
        cpu_ms.append((time.clock_gettime(clock) - began_s) * 1000)
    return percentile(cpu_ms[len(question.parameters) :], 0.5)


def _describe(
    question: ListQuestion, area: str, cost: Cost, unit_ms: float, peer_ms: float | None
) -> Figure:
    value = percentile(cost.cpu_ms, 0.5)
    targets = {"p99": at_most(P99_MS), "ratio": at_least(1)}
    if unit_ms:
        targets["value"] = at_most(unit_ms * question.units)
    units = f"{value / unit_ms:.2f} times {UNIT}, " if unit_ms else ""
    return Figure(
        area=area,
        name=question.name,
        unit="ms",
        value=value,
        p99=percentile(cost.cpu_ms, 0.99),
        targets=targets,
        note=f"{units}{percentile(cost.bytes, 0.5):,} bytes",
    ).beside(peer_ms)
