"""A lake whose blocks are verified by its own proofs, and lakes with other blocks."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.commands import run
from tests.conftest import unpack
from tests.patience import PATIENT
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.proof import read_signatures
from tonlake.ingest.errors import ChainUnproven
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.run.proven import ProofChecker, ProvenReport
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.log.state import LogState
from tonlake.lake.maintenance.removal import prune_lake, undo_after

LAST = 238


def identify(node: Path, mc_seqno: int) -> BlockId:
    with closing(open_node(node)) as source:
        return source.read_bundle(mc_seqno).blocks[0].id


def test_blocks_before_the_known_one(demo_lake: Path, demo_node: Path) -> None:
    found = ProofChecker(demo_lake, identify(demo_node, LAST), PATIENT.lake).check()
    assert (found.first_mc_seqno, found.last_mc_seqno, found.masterchain) == (1, LAST, LAST)
    assert found.shard_blocks > LAST


def test_blocks_after_it_take_a_key_block(demo_lake: Path, demo_node: Path) -> None:
    with pytest.raises(ChainUnproven, match=r"101\) is signed by .* key block 0"):
        ProofChecker(demo_lake, identify(demo_node, 100), PATIENT.lake).check()
    known = msgspec.structs.replace(identify(demo_node, LAST), seqno=999)
    with pytest.raises(ChainUnproven, match=r"masterchain block 999 .* name one of 1\.\.238"):
        ProofChecker(demo_lake, known, PATIENT.lake).check()
    known = msgspec.structs.replace(identify(demo_node, LAST), file_hash=bytes(32))
    with pytest.raises(ChainUnproven, match=r"another block in place of .*,238\)"):
        ProofChecker(demo_lake, known, PATIENT.lake).check()


def test_signatures_lead_on(shared: Path, tmp_path: Path) -> None:
    node = unpack(shared / "node" / "localnet-db.tar.zst", tmp_path)
    with closing(open_node(node, proofs=True)) as source:
        ingest(source, tmp_path / "lake", Span(240, 350), PATIENT)
        checker = ProofChecker(tmp_path / "lake", identify(node, 247), PATIENT.lake)
        found = checker.check()
        assert found == ProvenReport(240, 350, 111, found.shard_blocks)
        ingest(source, tmp_path / "lake", Span(351, 460), PATIENT)
    later = checker.check()
    assert later == ProvenReport(351, 460, 110, later.shard_blocks)
    whole = ProofChecker(tmp_path / "lake", identify(node, 247), PATIENT.lake).check()
    assert whole == ProvenReport(240, 460, 221, found.shard_blocks + later.shard_blocks)
    options: dict[str, Any] = {"source": {}, "reopen": lambda _state, _first: ()}
    undo_after(tmp_path / "lake", 440, PATIENT.lake, max_mc_blocks=100, **options)
    assert checker.check().masterchain == 201
    for change, why in ((declare_more, "but declare"), (swap, "is wrong")):
        alter(tmp_path / "lake", "block_proofs", 300, {"proof": change})
        with pytest.raises(ChainUnproven, match=rf",300\).*{why}"):
            ProofChecker(tmp_path / "lake", identify(node, 247), PATIENT.lake).check()
    prune_lake(tmp_path / "lake", 320, PATIENT.lake)
    assert checker.check() == ProvenReport(441, 440, 0, 0), "the first block is not needed again"


def declare_more(boc: bytes) -> bytes:
    """Raise the weight that a proof declares for its signatures (sig_count, sig_weight)."""
    found = read_signatures(boc)
    count = len(found.signatures).to_bytes(4)
    old, new = (count + weight.to_bytes(8) for weight in (found.weight, found.weight + 1))
    assert boc.count(old) == 1
    return boc.replace(old, new)


def swap(boc: bytes) -> bytes:
    """Flip a bit in the last signature."""
    return boc[:-20] + bytes((boc[-20] ^ 1,)) + boc[-19:]


def alter(
    lake: Path,
    table: str,
    seqno: int,
    changes: dict[str, Callable[[Any], Any]],
    workchain: int = -1,
) -> None:
    """Change a row of a block, by a commit such as a lying source would cause."""

    def derive(state: LogState) -> Derivation:
        files = []
        for file in list_files(state, table):
            rows = read_rows(lake, file).to_pylist()
            for row in rows:
                if (row["workchain"], row["seqno"]) == (workchain, seqno):
                    row |= {name: change(row[name]) for name, change in changes.items()}
            schema = read_rows(lake, file).schema
            rows = pa.Table.from_pylist(rows, schema=schema)
            files.append(NewFile(table, read_place(file.path), rows))
        return Derivation(files, frozenset(file.path for file in list_files(state, table)))

    commit_derived(lake, PATIENT.lake, derive)


@pytest.mark.parametrize(
    ("table", "workchain", "name", "change"),
    [
        ("blocks", -1, "root_hash", lambda _: bytes(32)),
        ("blocks", -1, "gen_utime", lambda utime: utime + 1),
        ("blocks", 0, "state_root_hash", lambda _: bytes(32)),
        ("blocks", 0, "file_hash", lambda _: bytes(32)),
        ("block_proofs", -1, "mc_extra", lambda _: None),
        ("block_proofs", 0, "proof", lambda boc: boc[:-1]),
    ],
)
def test_a_lake_that_lies(
    demo_lake: Path,
    demo_node: Path,
    tmp_path: Path,
    table: str,
    workchain: int,
    name: str,
    change: Callable[[Any], Any],
) -> None:
    lake = shutil.copytree(demo_lake, tmp_path / "lake")
    alter(lake, table, 150, {name: change}, workchain)
    with pytest.raises(ChainUnproven, match=r",150\)"):
        ProofChecker(lake, identify(demo_node, LAST), PATIENT.lake).check()


def test_command(demo_lake: Path, demo_node: Path, tmp_path: Path) -> None:
    last = identify(demo_node, LAST)
    block = f"{LAST}:{last.root_hash.hex()}:{last.file_hash.hex()}"
    pull = ["pull", str(demo_lake), "--lake", str(tmp_path / "copy"), "--check-proofs"]
    found = run(*pull, block)
    assert found.exit_code == 0, found.output
    assert "proven: 238 masterchain blocks 1..238" in found.output
    other = f"{LAST}:{'00' * 32}:{'00' * 32}"
    # A follower looks at what is there, and at every commit: it ends where one is not proven.
    follow = [*pull[:3], str(tmp_path / "new"), "--follow", "--check-proofs"]
    for wrong in ([*pull, other], [*pull, other, "--follow"], [*follow, other]):
        found = run(*wrong)
        assert found.exit_code == 1
        assert "another block in place of (-1,8000000000000000,238)" in found.output
    for text in ("238", str(tmp_path / "none.json"), f"{LAST}:00:00"):
        assert run(*pull, text).exit_code == 2
