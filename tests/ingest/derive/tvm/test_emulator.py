"""The emulator makes the transactions of genuine nodes again, bit for bit."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.conftest import unpack
from tests.ingest.derive.tvm.replay import Replay, is_external, replay_all
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Emulated, NotAccepted
from tonlake.ingest.derive.tvm.message import build_external_message, read_destination, read_message
from tonlake.ingest.errors import TvmRefusal
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.derive.tvm.call import EmulationCall
    from tonlake.ingest.derive.tvm.pool import TvmPool


WALLET_V3 = bytes.fromhex("84dafa449f98a6987789ba232358072bc0f76dc4524002a5d0918b9a75d2d599")


@pytest.fixture(scope="module")
def replay(demo_lake: Path) -> Replay:
    return Replay(demo_lake)


def test_transactions_of_the_demo_node(replay: Replay, pool: TvmPool) -> None:
    """The tick-tock ones of a few blocks tell as much as all of them."""
    verdict = replay_all(replay, pool.emulate, "descr = 'ord' or mc_seqno < 30")
    assert verdict.others == []
    assert verdict.equal["external"] == 300
    assert verdict.equal.keys() == {"external", "ord", "tick_tock"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("archive", "count"),
    [("node/localnet-db.tar.zst", 22089), ("node/celldb-v2/localnet-celldbv2.tar.zst", 5008)],
)
def test_transactions_of_other_nodes(
    shared: Path, pool: TvmPool, tmp_path: Path, archive: str, count: int
) -> None:
    """Every transaction, those of all external messages among them, with its fees."""
    with closing(open_node(unpack(shared / archive, tmp_path / "node"))) as source:
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        ingest(source, tmp_path / "lake", span, IngestSections())
    verdict = replay_all(Replay(tmp_path / "lake"), pool.emulate)
    assert verdict.others == []
    assert verdict.equal.total() == count


def find_wallet_call(replay: Replay) -> EmulationCall:
    """Return a call of a wallet of version 3 from outside."""
    wallets = {
        row["account"]
        for row in replay.rows("select account, code_hash from account_states")
        if row["code_hash"] == WALLET_V3
    }
    for row in replay.transactions("workchain = 0 and mc_seqno > 30"):
        asked = replay.describe(row) if row["account"] in wallets else None
        if asked is not None and is_external(asked[0].message):
            return asked[0]
    raise AssertionError


def spoil_signature(message: bytes) -> bytes:
    """Return the same message with another signature, which its body begins with."""
    tree = parse_boc(read_message(message)["body"])
    value, bits = tree.bits(tree.roots[0])
    body = append_cell(tree, value ^ 1 << bits - 1, bits, tuple(tree.refs(tree.roots[0])))
    target = read_destination(message)
    return build_external_message(*target, serialize_boc(tree, [body]), (None, None))


def test_a_message_that_is_not_accepted(replay: Replay, pool: TvmPool) -> None:
    """A wallet refuses what it ran already; its exit code is known, and the next call is clean."""
    call = find_wallet_call(replay)
    made = pool.emulate(call)
    assert isinstance(made, Emulated)
    again = msgspec.structs.replace(call, account=made.account, lt=call.lt + 1_000_000)
    assert pool.emulate(again) == NotAccepted(33)
    assert pool.emulate(call) == made


def test_signatures_can_count_as_right(replay: Replay, pool: TvmPool) -> None:
    call = find_wallet_call(replay)
    spoilt = msgspec.structs.replace(call, message=spoil_signature(call.message or b""))
    assert pool.emulate(spoilt) == NotAccepted(35)
    trusting = msgspec.structs.replace(spoilt, ignore_chksig=True)
    assert isinstance(pool.emulate(trusting), Emulated)
    assert pool.emulate(spoilt) == NotAccepted(35), "the switch stayed on"


@pytest.mark.parametrize("part", ["account", "message", "config", "libraries"])
@pytest.mark.parametrize("boc", [b"", b"no bag"])
def test_what_is_no_cell_is_refused(replay: Replay, pool: TvmPool, part: str, boc: bytes) -> None:
    asked = replay.describe(replay.transactions("workchain = 0")[0])
    assert asked is not None
    with pytest.raises(TvmRefusal):
        pool.emulate(msgspec.structs.replace(asked[0], **{part: boc}))
