"""Verifies the blocks of a lake by the proofs stored in it.

From one trusted masterchain block, earlier ones are proven by the hashes in headers, and later ones
by the signatures of the validators that key blocks name. Shard blocks are proven from the tops that
masterchain blocks name, by the hashes in their headers.
"""

from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.header import (
    list_previous,
    read_info,
    read_parts,
    read_shard_tops,
    read_state_hash,
)
from tonlake.ingest.decode.block.proof import (
    SignatureSet,
    Validator,
    check_proof,
    check_signature_set,
    open_header,
    read_validators,
)
from tonlake.ingest.errors import BocError, ChainUnproven, DecodeError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.ranges import cut_ranges
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogState
from tonlake.lake.settings import LakeSettings

ROWS_TOGETHER = 256

_COMPARED = ("gen_utime", "start_lt", "end_lt", "prev_key_block_seqno", "key_block", "after_merge")
"""Columns of ``blocks`` that are compared with the header, besides the hashes."""

Row = dict[str, Any]


class ProvenReport(msgspec.Struct, frozen=True):
    """Number of proven blocks, and the range of masterchain blocks."""

    first_mc_seqno: int
    last_mc_seqno: int
    masterchain: int
    shard_blocks: int


class ProofChecker:
    """Verifies the blocks of a lake from a trusted one; later calls verify only new blocks.

    It verifies the rows of the table ``blocks``: ids, state hashes, times and links. Transactions
    follow from a block's bytes, which are not in a lake.
    """

    def __init__(self, lake_dir: Path, known: BlockId, settings: LakeSettings) -> None:
        """Read nothing yet; the lake must have the masterchain block ``known``."""
        self._lake_dir, self._known, self._settings = lake_dir, known, settings
        self._statement = (files("tonlake.ingest.run") / "proven.sql").read_text(encoding="utf-8")
        self._checked = LogState()
        self._start_over()

    def _start_over(self) -> None:
        self._proven: BlockId | None = None
        """The newest proven masterchain block."""
        self._validators: dict[int, list[Validator]] = {}
        self._proven_keys: set[int] = set()

    def check(self) -> ProvenReport:
        """Verify the newest snapshot; start over only if earlier blocks were added or undone."""
        snapshot = open_snapshot(self._lake_dir)
        if not _is_extended(self._checked, snapshot.state):
            self._start_over()
        with closing(connect(snapshot, self._settings, statement=self._statement)) as connection:
            self._connection = connection
            report = self._check(snapshot)
        self._checked = snapshot.state
        return report

    def _check(self, snapshot: Snapshot) -> ProvenReport:
        known, last = self._known, snapshot.last_mc_seqno
        is_held = any(first <= known.seqno <= end for first, end in snapshot.ranges)
        if self._proven is None and not is_held:
            ranges = ", ".join(f"{first}..{end}" for first, end in snapshot.ranges)
            raise ChainUnproven(
                f"the lake does not have masterchain block {known.seqno} to start from: name one of"
                f" {ranges}"
            )
        first, count = snapshot.first_mc_seqno, 0
        if self._proven is None:
            count = self._check_backward()
        else:
            first = self._proven.seqno + 1
        count += self._check_forward(self._proven or known, last)
        shard_blocks = self._check_shards(first, last)
        return ProvenReport(first, last, count, shard_blocks)

    def _check_backward(self) -> int:
        expected, count = self._known, 0
        for row in self._list(0, self._known.seqno, descending=True):
            block_id, (_signed, previous) = _identify(row), _open(row)
            if block_id.seqno != expected.seqno:
                raise ChainUnproven(
                    f"masterchain block {expected.seqno} is not in the lake, and no hash links "
                    f"{block_id.seqno} across the gap: pull it, or start from an earlier block"
                )
            if block_id != expected:
                raise ChainUnproven(f"the lake has another block in place of {expected}")
            expected = previous[0]
            if row["key_block"]:
                self._proven_keys.add(block_id.seqno)
            count += 1
        return count

    def _check_forward(self, before: BlockId, last: int) -> int:
        count = 0
        for row in self._list(before.seqno + 1, last):
            block_id, (signed, (previous, *_)) = _identify(row), _open(row)
            if previous.seqno == before.seqno and previous != before:
                raise ChainUnproven(f"block {block_id} does not follow {before} of the lake")
            self._check_signed(block_id, signed, row["prev_key_block_seqno"])
            if row["key_block"]:
                self._proven_keys.add(block_id.seqno)
            before = block_id
            count += 1
        self._proven = before
        return count

    def _check_signed(self, block_id: BlockId, signed: SignatureSet | None, key_seqno: int) -> None:
        if signed is None:
            raise ChainUnproven(f"the lake has no readable signatures of block {block_id}")
        if key_seqno not in self._validators:
            self._validators[key_seqno] = self._read_validators(block_id, key_seqno)
        try:
            check_signature_set(block_id, self._validators[key_seqno], signed)
        except DecodeError as error:
            raise ChainUnproven(str(error)) from error

    def _read_validators(self, block_id: BlockId, key_seqno: int) -> list[Validator]:
        if key_seqno not in self._proven_keys:
            raise ChainUnproven(
                f"block {block_id} is signed by the validators of key block {key_seqno}, which is "
                "not proven: start from a later block"
            )
        row = next(self._list(key_seqno, key_seqno), None)
        if row is None:
            raise ChainUnproven(f"key block {key_seqno} was pruned from the lake meanwhile")
        try:
            tree = open_header(row["proof"], row["mc_extra"])
            return read_validators(tree, _identify(row))
        except (BocError, DecodeError, TypeError) as error:
            raise ChainUnproven(f"key block {_identify(row)}: {error}") from error

    def _check_shards(self, first: int, last: int) -> int:
        """Verify shard blocks: a masterchain block or a later, verified shard block names each."""
        expected: set[BlockId] = set()
        master = count = 0
        for row in self._list(first, last, shards=True, descending=True):
            block_id, (_signed, previous) = _identify(row), _open(row)
            if block_id.workchain == MASTERCHAIN:
                master = block_id.seqno
                try:
                    tops = read_shard_tops(open_header(row["proof"], row["mc_extra"]))
                except (BocError, DecodeError, TypeError) as error:
                    raise ChainUnproven(f"block {block_id}: {error}") from error
                expected = {_identify(msgspec.structs.asdict(top)) for top in tops}
                continue
            if block_id not in expected:
                raise ChainUnproven(f"block {block_id} is not named by masterchain block {master}")
            expected.update(previous)
            count += 1
        return count

    def _list(
        self, first: int, last: int, *, shards: bool = False, descending: bool = False
    ) -> Iterator[Row]:
        cursor = self._connection.cursor()
        values = {"first": first, "last": last, "shards": shards, "descending": descending}
        cursor.execute(self._statement, values)
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(ROWS_TOGETHER):
            yield from (dict(zip(names, row, strict=True)) for row in rows)


def _is_extended(before: LogState, now: LogState) -> bool:
    """Return whether since ``before`` blocks were added only at the end, or pruned."""
    if before.undoings != now.undoings:
        return False
    last = before.ranges[-1][1] if before.ranges else 0
    return cut_ranges(now.known_ranges, last) == cut_ranges(before.known_ranges, last)


def _identify(row: Row) -> BlockId:
    return BlockId(*(row[name] for name in BlockId.__struct_fields__))


def _open(row: Row) -> tuple[SignatureSet | None, tuple[BlockId, ...]]:
    """Compare a row with its proof; return the signatures in it, and the previous blocks."""
    block_id = _identify(row)
    if row["proof"] is None or (row["workchain"] == MASTERCHAIN and row["mc_extra"] is None):
        raise ChainUnproven(
            f"the lake has no proof of block {block_id}: it was ingested without one, for example "
            "from lite servers, or the table block_proofs was not copied"
        )
    try:
        signed = check_proof(row["proof"], block_id)
        tree = open_header(row["proof"])
        info = read_info(tree, read_parts(tree).info)
        found = info | {"state_root_hash": read_state_hash(tree)}
    except (BocError, DecodeError) as error:
        raise ChainUnproven(f"block {block_id}: {error}") from error
    for name in ("workchain", "shard", "seqno", "state_root_hash", *_COMPARED):
        if found[name] != row[name]:
            raise ChainUnproven(
                f"block {block_id}: {name} is {row[name]!r} in the lake but {found[name]!r} in the "
                "proof"
            )
    return signed, list_previous(found)
