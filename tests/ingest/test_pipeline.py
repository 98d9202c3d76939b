"""The pipeline on the demo node: everything once, the same bytes every time, holes named."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ingest.errors import SourceError
from ingest.node.packs import open_packs
from ingest.node.source import open_node
from ingest.pipeline import IngestReport, ingest
from ingest.span import Span
from lake.settings import Settings
from lake.snapshot import open_snapshot

if TYPE_CHECKING:
    from ingest.source import BlockSource, McBundle

SMALL = msgspec.structs.replace(Settings(), mc_blocks_per_commit=40, mc_blocks_per_chunk=16)
STATUS = ("uninit", "frozen", "active", "nonexist")


def _bring(
    source: BlockSource, lake: Path, span: Span | None = None, **options: Any
) -> IngestReport:
    span = span or Span(source.first_mc_seqno(), source.last_mc_seqno())
    return ingest(source, lake, span, options.pop("settings", SMALL), **options)


def _tree_digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _facts(demo_facts: Path, name: str) -> list[dict[str, Any]]:
    with (demo_facts / f"expected-{name}.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def lake(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline") / "lake"
    with closing(open_node(demo_node)) as source:
        report = _bring(source, folder)
    assert report.committed == ["1:40", "41:80", "81:120", "121:160", "161:200", "201:238"]
    assert not report.holes
    return folder


def _rows(lake: Path, sql: str) -> list[tuple[Any, ...]]:
    return open_snapshot(lake).connect(Settings()).execute(sql).fetchall()


def test_every_block_is_there_once(lake: Path, demo_facts: Path) -> None:
    got = _rows(
        lake,
        "select workchain, shard, seqno, mc_seqno, hex(root_hash), hex(file_hash), tx_count, "
        "gen_utime, start_lt, end_lt from blocks",
    )
    names = "workchain shard seqno mc_seqno root_hash file_hash tx_count gen_utime start_lt end_lt"
    wanted = [
        tuple(
            fact[name].upper() if name.endswith("hash") else fact[name] for name in names.split()
        )
        for fact in _facts(demo_facts, "blocks")
    ]
    assert sorted(got) == sorted(wanted)


def test_every_transaction_is_there_once(lake: Path, demo_facts: Path) -> None:
    got = _rows(
        lake,
        "select workchain, lower(hex(account)), lt, lower(hex(hash)), shard, block_seqno, "
        "mc_seqno, lower(hex(prev_trans_hash)), prev_trans_lt, now, outmsg_cnt, orig_status, "
        "end_status, total_fees, lower(hex(in_msg_hash)) from transactions",
    )
    names = (
        "workchain account lt hash shard block_seqno mc_seqno prev_trans_hash prev_trans_lt now "
        "outmsg_cnt orig_status end_status total_fees in_msg_hash"
    ).split()
    wanted = [
        tuple(STATUS[fact[name]] if name.endswith("status") else fact[name] for name in names)
        for fact in _facts(demo_facts, "transactions")
    ]
    assert sorted(got, key=str) == sorted(wanted, key=str)


def test_out_messages_are_those_expected(lake: Path, demo_facts: Path) -> None:
    got = _rows(
        lake,
        "select lower(hex(tx_hash)), list(lower(hex(msg_hash)) order by msg_index) "
        "from messages where direction = 'out' group by 1",
    )
    wanted = {
        fact["hash"]: fact["out_msg_hashes"]
        for fact in _facts(demo_facts, "transactions")
        if fact["out_msg_hashes"]
    }
    assert dict(got) == wanted


def test_last_states_are_those_of_the_node(lake: Path, demo_facts: Path) -> None:
    got = _rows(
        lake,
        "select workchain || ':' || lower(hex(account)), account_status, balance, "
        "lower(hex(code_hash)), lower(hex(data_hash)) from latest_account_states",
    )
    wanted = {
        (
            fact["address"],
            fact["status"],
            int(fact.get("balance") or 0),
            fact.get("code_hash"),
            fact.get("data_hash"),
        )
        for fact in _facts(demo_facts, "accounts")
    }
    assert set(got) == wanted


def test_a_second_run_adds_nothing(lake: Path, demo_node: Path) -> None:
    before = _tree_digest(lake)
    with closing(open_node(demo_node)) as source:
        report = _bring(source, lake)
    assert not report.committed
    assert report.skipped == ["1:238"]
    assert _tree_digest(lake) == before


def test_the_same_input_gives_the_same_bytes(lake: Path, demo_node: Path, tmp_path: Path) -> None:
    with closing(open_node(demo_node)) as source:
        _bring(source, tmp_path / "again", workers=2)
    assert _tree_digest(tmp_path / "again") == _tree_digest(lake)


def test_ranges_in_any_order_give_the_same_rows(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    with closing(open_node(demo_node)) as source:
        for span in (Span(150, 238), Span(1, 60), Span(50, 149)):
            _bring(source, tmp_path / "parts", span)
    tables = "blocks", "shard_blocks", "transactions", "messages", "account_states", "libraries"
    for table in tables:
        sql = f"select * exclude (day) from {table} order by all"  # noqa: S608 - names above
        assert _rows(tmp_path / "parts", sql) == _rows(lake, sql)
    cells = "select hash, cell, refs from state_cells order by hash"
    assert _rows(tmp_path / "parts", cells) == _rows(lake, cells)


def test_the_node_is_left_as_it_was(demo_node: Path, tmp_path: Path) -> None:
    before = _tree_digest(demo_node)
    with closing(open_node(demo_node)) as source:
        _bring(source, tmp_path / "lake", Span(1, 20))
    assert _tree_digest(demo_node) == before


def test_packages_alone_give_the_same_rows(lake: Path, demo_node: Path, tmp_path: Path) -> None:
    with closing(open_packs(demo_node / "archive" / "packages")) as source:
        report = _bring(source, tmp_path / "lake")
    assert not report.holes
    sql = "select hash from transactions order by hash"
    assert _rows(tmp_path / "lake", sql) == _rows(lake, sql)


class Damaged:
    """A source that gives one block with a flipped bit."""

    def __init__(self, source: BlockSource, mc_seqno: int) -> None:
        self._source = source
        self._mc_seqno = mc_seqno

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_bundle(self, mc_seqno: int) -> McBundle:
        bundle = self._source.read_bundle(mc_seqno)
        if mc_seqno != self._mc_seqno:
            return bundle
        first, *rest = bundle.blocks
        data = bytearray(first.data)
        data[len(data) // 2] ^= 1
        broken = msgspec.structs.replace(first, data=bytes(data))
        return msgspec.structs.replace(bundle, blocks=(broken, *rest))


def test_a_corrupt_block_is_a_hole_and_the_rest_goes_on(demo_node: Path, tmp_path: Path) -> None:
    with closing(open_node(demo_node)) as source:
        report = _bring(Damaged(source, 21), tmp_path / "lake", Span(1, 50))  # type: ignore[arg-type]
        assert [(hole.mc_seqno, hole.kind) for hole in report.holes] == [(21, "BlockCorrupt")]
        assert "(-1,8000000000000000,21)" in report.holes[0].reason
        assert open_snapshot(tmp_path / "lake").ranges == ((1, 20), (22, 50))
        healed = _bring(source, tmp_path / "lake", Span(1, 50))
    assert healed.committed == ["21:21"]
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 50),)


class OtherChain(Damaged):
    """A source that claims blocks of its own chain under other seqnos' predecessors."""

    def read_bundle(self, mc_seqno: int) -> McBundle:
        bundle = self._source.read_bundle(mc_seqno - 1)
        return msgspec.structs.replace(bundle, mc_seqno=mc_seqno)


def test_another_chain_is_refused(demo_node: Path, tmp_path: Path) -> None:
    with closing(open_node(demo_node)) as source:
        _bring(source, tmp_path / "lake", Span(1, 10))
        with pytest.raises(SourceError, match="does not follow"):
            _bring(OtherChain(source, 0), tmp_path / "lake", Span(11, 20))  # type: ignore[arg-type]
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 10),)


def test_a_copied_lake_resumes_to_the_same_bytes(demo_node: Path, tmp_path: Path) -> None:
    with closing(open_node(demo_node)) as source:
        _bring(source, tmp_path / "lake", Span(1, 80))
        shutil.copytree(tmp_path / "lake", tmp_path / "copy")
        _bring(source, tmp_path / "lake")
        _bring(source, tmp_path / "copy")
    assert _tree_digest(tmp_path / "copy") == _tree_digest(tmp_path / "lake")
