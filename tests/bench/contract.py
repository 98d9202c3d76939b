"""Benchmarks contract detection: states a second from data cells and by TVM, and cost at ingest.

All states are from the demo node's database. CPU of the processes that run get-methods is included.
"""

from __future__ import annotations

import resource
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

from tests.bench.figure import Figure, at_most
from tests.conftest import DEMO, unpack
from tests.patience import compose
from tonlake.api.settings import Settings
from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.derivation import GAS_LIMIT
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.known import KnownLake
from tonlake.ingest.derive.contract.reader import find_reader
from tonlake.ingest.derive.contract.session import GetMethodSession
from tonlake.ingest.derive.contract.world import Network, World
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import TvmSettings
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import BASE_TABLES

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.derive.contract.stack import Question, Value

AREA = "contracts, demo node"
MAX_RATIO = 3.0
_BASE = {table.name for table in BASE_TABLES}
_ROUNDS, _QUICK_ROUNDS = 10, 3
_PLAIN = compose(
    ingest={"detect_contracts": False, "classify_actions": False}, lake={"build_index": False}
)
_DETECTING = compose(ingest={"classify_actions": False}, lake={"build_index": False})


class ByMachine(GetMethodSession):
    """Ignores data cells: every answer comes from a get-method."""

    def answer(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        """Run the get-method even where the data cell has the answer."""
        return self.run_tvm(question, state, mc_seqno)


def measure_contracts(scratch: Path, *, quick: bool) -> list[Figure]:
    """Return the states detected per second in both ways, and the cost at ingest."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    node = unpack(DEMO / "demo-node.tar.zst", scratch / "contract.node")
    costs_s = {
        settings.ingest.detect_contracts: min(
            _ingest(node, scratch / "contract.lake", settings) for _ in range(rounds)
        )
        for settings in (_DETECTING, _PLAIN)
    }
    figures = _measure_detection(scratch / "contract.lake", rounds)
    shutil.rmtree(scratch / "contract.lake")
    ratio = Figure(
        area=AREA,
        name="ingest with detection to ingest without",
        unit="x",
        value=costs_s[True] / costs_s[False],
        targets={"value": at_most(MAX_RATIO)},
        note="without actions and look-ups; starting the machine is counted",
    )
    return [*figures, ratio]


def _measure_cpu_s() -> float:
    """Return the CPU seconds used so far, ended children included."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _ingest(node: Path, lake_dir: Path, settings: Settings) -> float:
    """Ingest a node into a new lake, and return the seconds of CPU."""
    shutil.rmtree(lake_dir, ignore_errors=True)
    before_s = _measure_cpu_s()
    with closing(open_node(node)) as source:
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        ingest(source, lake_dir, span, settings)
    return _measure_cpu_s() - before_s


def _measure_detection(lake_dir: Path, rounds: int) -> list[Figure]:
    state = read_state(lake_dir)
    rows = {file.table: read_rows(lake_dir, file) for file in state.files if file.table in _BASE}
    figures = []
    for name, way in (("by data cell", GetMethodSession), ("by the machine", ByMachine)):
        before_s = _measure_cpu_s()
        with closing(TvmPool(TvmSettings())) as pool:
            tvm = pool if way is ByMachine else None
            counts = [_detect(lake_dir, rows, way, tvm) for _ in range(rounds)]
        cost_s = _measure_cpu_s() - before_s
        figures.append(
            Figure(
                area=AREA,
                name=f"states detected {name}",
                unit="states/s",
                value=sum(counts) / cost_s,
                note=f"{counts[0]:,} states of codes that can be read, with all their checks",
            )
        )
    return figures


def _detect(
    lake_dir: Path, rows: dict[str, pa.Table], way: type[GetMethodSession], tvm: TvmPool | None
) -> int:
    """Detect the type of every state; return the number of states with readable codes."""
    settings = Settings()
    with (
        closing(KnownLake(lake_dir, settings)) as lake,
        closing(CellFinder(lake_dir, settings)) as finder,
    ):
        world = World(lake, read_state(lake_dir), finder, rows)
        session = way(world, Network(world, 1), tvm, GAS_LIMIT)
        found = {
            state
            for state, _finding in ContractDetection(world, session, None).detect(
                list(world.list_states()), 1
            )
        }
    count = sum(map(_is_readable, found))
    if not count:
        raise LookupError("no contract of the demo node was detected")
    return count


def _is_readable(state: AccountState) -> bool:
    return any(
        find_reader(state.code_hash or b"", method) is not None
        for method in (
            *("get_wallet_data", "get_jetton_data", "get_nft_data"),
            *("get_collection_data", "get_multisig_data", "get_order_data", "get_sale_data"),
        )
    )
