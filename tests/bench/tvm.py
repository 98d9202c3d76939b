"""Benchmarks the TVM: get-methods and emulated transactions a second, on one core."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.figure import Figure
from tests.conftest import DEMO, unpack
from tests.ingest.derive.tvm.replay import Replay
from tests.ingest.whole import ingest_node
from tonlake.api.settings import Settings
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.derive.tvm.call import (
    Context,
    EmulationCall,
    GetMethodCall,
    NetworkConfig,
    PreviousBlocks,
    StackLimits,
    method_id,
)
from tonlake.ingest.derive.tvm.worker import Answer, Call, Refusal, WorkerSettings, load_engine

LIMITS = WorkerSettings(1 << 30, StackLimits(8000, 100, 16 << 20))
CALLS = 200


def measure_tvm(scratch: Path, *, quick: bool) -> list[Figure]:
    """Return get-methods and transactions a second; nothing if no TVM is installed."""
    try:
        answer = load_engine(LIMITS)
    except (ImportError, OSError):
        return []
    replay = Replay(_make_lake(scratch))
    seconds = 0.5 if quick else 5.0
    runs: dict[str, tuple[str, Sequence[Call]]] = {
        "seqno of wallets": ("get-methods/s", list_calls(replay)),
        "transactions of a node": ("emulations/s", _list_emulations(replay)),
    }
    return [
        Figure(area="tvm", name=name, unit=unit, value=_measure(answer, calls, seconds))
        for name, (unit, calls) in runs.items()
    ]


def _make_lake(scratch: Path) -> Path:
    lake_dir = scratch / "tvm.lake"
    ingest_node(unpack(DEMO / "demo-node.tar.zst", scratch / "tvm.node"), lake_dir, Settings())
    return lake_dir


def list_calls(replay: Replay) -> list[GetMethodCall]:
    """Return the get-method ``seqno`` on states of wallets."""
    asked = replay.describe(replay.transactions("workchain = 0")[0])
    if asked is None:
        raise LookupError("the lake does not begin at its zero state")
    rows = replay.rows(
        "select * from account_states where account_status = 'active' and workchain = 0"
        " and code_hash in (select code_hash from account_states group by 1"
        " order by count(*) desc limit 3) order by last_trans_lt limit 200"
    )
    cells = replay.cells
    found = []
    for row in rows:
        code, data = (assemble_boc(row[name], cells) for name in ("code_hash", "data_hash"))
        context = _describe(row["account"], row["utime"], asked[1])
        found.append(GetMethodCall(code, data, (method_id("seqno"),), context, gas_limit=1_000_000))
    return found


def _describe(account: bytes, now: int, config: NetworkConfig) -> Context:
    return Context(0, account, now, 10**9, {}, config.root, config.version, PreviousBlocks())


def _list_emulations(replay: Replay) -> list[EmulationCall]:
    asked = [replay.describe(row) for row in replay.transactions("workchain = 0")[:CALLS]]
    return [one[0] for one in asked if one is not None]


def _measure(answer: Callable[[Call], Answer], calls: Sequence[Call], seconds: float) -> float:
    """Return answers a second of CPU; no call may be refused, as that would flatter the figure."""
    if any(isinstance(answer(call), Refusal) for call in calls):
        raise RuntimeError("a call that is measured was refused")
    count, start_s = 0, time.process_time()
    while time.process_time() - start_s < seconds:
        for call in calls:
            answer(call)
        count += len(calls)
    return count / (time.process_time() - start_s)
