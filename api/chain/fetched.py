"""Fetches accounts that the lake does not know from lite servers, with proofs, and keeps them.

An account that no block in the lake touches had the same state in all of them. A state proven at
one block is valid until a block touches the account, if no blocks are missing in between.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.api.chain.place import (
    find_configuration_seqno,
    find_master,
    find_range_start,
    list_ancestors,
)
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.state import StateAt, Touched, make_row, read_account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import SourceError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.rewrite import keep_fetched
from tonlake.lake.copy.pull import STAGING_FOLDER
from tonlake.lake.errors import LakeError
from tonlake.lake.schema import ACCOUNT_STATES, FETCHED_ACCOUNTS
from tonlake.queries.errors import QueryNeeded

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.api.request.call import Call
    from tonlake.api.settings import Settings
    from tonlake.api.text.address import Address
    from tonlake.ingest.source.liteserver.query import StateServers

LOG = logging.getLogger("tonlake.api")

TIMEOUT_MS = 2000
"""Timeout for one lite server to return a state, before the next one is asked."""

KEEP_S = 2.0
"""Interval between commits of fetched accounts."""

IN_MEMORY = 1000
"""Maximum fetched accounts in memory, including accounts that do not exist."""

Row = dict[str, Any]
_Key = tuple[int, bytes]


class FetchedAccount(msgspec.Struct, frozen=True):
    """A fetched account: its state as a row of ``account_states``, and its cells by hash.

    ``row`` is None if the account does not exist.
    """

    mc_seqno: int
    row: Row | None
    bags: Mapping[bytes, bytes] = {}
    boc: bytes = b""


class AccountFetcher:
    """Fetches accounts for the API and commits them to the lake if it is writable."""

    def __init__(self, lake_dir: Path, servers: StateServers, settings: Settings) -> None:
        """Take ownership of ``servers``; ``close`` commits what is left and closes them."""
        self._lake_dir, self._servers, self._settings = lake_dir, servers, settings
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, FetchedAccount] = OrderedDict()
        self._configs: dict[int, dict[int, bytes]] = {}
        self._due: dict[_Key, FetchedAccount] = {}
        self._over = threading.Event()
        # A pulled copy accepts only commits from its source.
        self._keeps = (
            settings.liteserver.kept_accounts > 0 and not (lake_dir / STAGING_FOLDER).exists()
        )
        self._thread = threading.Thread(target=self._keep_all, name="fetched", daemon=True)
        self._thread.start()

    def recall(self, address: Address, first: int, mc_seqno: int) -> FetchedAccount | None:
        """Return a cached account fetched at a block from ``first`` to ``mc_seqno``, or None."""
        key = address.workchain, address.account
        with self._lock:
            found = self._known.get(key)
            if found is None or not first <= found.mc_seqno <= mc_seqno:
                return None
            self._known.move_to_end(key)
            return found

    def fetch(self, call: Call, address: Address) -> FetchedAccount:
        """Fetch an account as of the newest block of the call's snapshot.

        Raises:
            SourceError: no lite server can be reached, has the state, or gives a valid proof.
        """
        master = _identify(find_master(call))
        top = _find_top(call, master, address)
        if top is None:
            raise SourceError(f"the lake does not name a shard block for {address}")
        found = self._servers.ask_account(master, top, address.workchain, address.account)
        fetched = FetchedAccount(master.seqno, None)
        if found is not None:
            touched = Touched(
                address.account, found.last_trans_lt, found.last_trans_hash, found.hash
            )
            fetched = describe(address.workchain, touched, found.boc, master.seqno)
        key = address.workchain, address.account
        with self._lock:
            self._known[key] = fetched
            while len(self._known) > IN_MEMORY:
                self._known.popitem(last=False)
            if self._keeps and found is not None and len(self._due) < IN_MEMORY:
                self._due[key] = fetched
        return fetched

    def fetch_config(self, call: Call, master: Mapping[str, Any]) -> dict[int, bytes]:
        """Fetch the configuration after a masterchain block.

        Raises:
            SourceError: as ``fetch``.
        """
        key_seqno = find_configuration_seqno(master)
        found = self._configs.get(key_seqno)
        if found is None:
            if not call.reader.may_query:
                raise QueryNeeded("the configuration must be fetched")
            found = self._servers.ask_config(_identify(master))
            with self._lock:
                while len(self._configs) >= _CONFIGS:
                    del self._configs[next(iter(self._configs))]
                self._configs[key_seqno] = found
        return found

    def close(self) -> None:
        """Commit the remaining accounts and close all connections."""
        self._over.set()
        self._thread.join()
        self._servers.close()

    def _keep_all(self) -> None:
        while self._keeps and not self._over.wait(KEEP_S):
            self._keep()
        if self._keeps:
            self._keep()

    def _keep(self) -> None:
        """Commit the accounts fetched since the last commit; stop trying if that fails."""
        with self._lock:
            due, self._due = self._due, {}
        if not due:
            return
        rows = pa.Table.from_pylist(
            [_write_row(key, fetched) for key, fetched in due.items()],
            schema=FETCHED_ACCOUNTS.arrow,
        )
        most = self._settings.liteserver.kept_accounts
        try:
            keep_fetched(self._lake_dir, rows, most, self._settings.lake)
        except (LakeError, OSError) as error:
            self._keeps = False
            LOG.warning("accounts from lite servers are not kept in the lake: %s", error)


_CONFIGS = 4


def find_fetched(
    call: Call, address: Address, mc_seqno: int, state_hash: bytes | None = None
) -> FetchedAccount | None:
    """Return an account after a masterchain block if no block in the lake shows its state.

    It comes from memory, from the table ``fetched_accounts`` or, for the newest block, from lite
    servers. None if there is none; if a fetch failed, a warning of the response says why. With
    ``state_hash``, known from the lake, the state with that hash is returned, fetched at any block.

    Raises:
        QueryNeeded: it takes a query or a fetch, and the call must not wait.
    """
    newest = call.reader.snapshot.last_mc_seqno
    span = (find_range_start(call, mc_seqno), mc_seqno) if state_hash is None else (0, newest)
    found: FetchedAccount | None = None
    if call.fetcher is not None:
        found = call.fetcher.recall(address, *span)
    if found is None or not _has(found, state_hash):
        found = _read_kept(call, address, span, state_hash)
    if found is not None or call.fetcher is None or mc_seqno != newest:
        return found
    if not call.reader.may_query:
        raise QueryNeeded("an account must be fetched")
    try:
        found = call.fetcher.fetch(call, address)
    except SourceError as error:
        call.warn(f"{address} could not be fetched from lite servers: {error}")
        call.passing.append(str(address))
        return None
    return found if _has(found, state_hash) else None


def find_bags(
    call: Call, address: Address, mc_seqno: int, state_hash: bytes
) -> Mapping[bytes, bytes]:
    """Return account, code and data cells of a state that the lake does not have, by hash."""
    found = find_fetched(call, address, mc_seqno, state_hash)
    return {} if found is None else found.bags


def _has(found: FetchedAccount, state_hash: bytes | None) -> bool:
    return state_hash is None or (found.row is not None and found.row["hash"] == state_hash)


def _read_kept(
    call: Call, address: Address, span: tuple[int, int], state_hash: bytes | None
) -> FetchedAccount | None:
    """Return an account from ``fetched_accounts`` as of a block in ``span``, or None."""
    if not call.reader.snapshot.files[FETCHED_ACCOUNTS.name]:
        return None
    row = call.reader.one(
        "v2/fetched_account",
        workchain=address.workchain,
        account=address.account,
        first=span[0],
        mc_seqno=span[1],
        hash=state_hash,
    )
    if row is None:
        return None
    touched = Touched(address.account, row["last_trans_lt"], row["last_trans_hash"], row["hash"])
    return describe(address.workchain, touched, row["boc"], row["mc_seqno"])


def describe(workchain: int, touched: Touched, boc: bytes, mc_seqno: int) -> FetchedAccount:
    """Return the row and the cells of an Account cell."""
    tree = parse_boc(boc)
    root = tree.roots[0]
    state = read_account(tree, root)
    at = StateAt(workchain, 0, 0, mc_seqno, 0)
    names = ACCOUNT_STATES.arrow.names
    row = dict(zip(names, make_row(tree, at, touched, state), strict=True))
    cells = {tree.hash(cell): cell for cell in (root, state.code, state.data) if cell is not None}
    bags = {
        cell_hash: serialize_boc(tree, [cell], crc32c=True) for cell_hash, cell in cells.items()
    }
    return FetchedAccount(mc_seqno, row | {"bags": bags}, bags, boc)


def _write_row(key: _Key, fetched: FetchedAccount) -> Row:
    row = fetched.row or {}
    names = ("mc_seqno", "hash", "last_trans_lt", "last_trans_hash")
    written = {name: row[name] for name in names}
    return {"workchain": key[0], "account": key[1], **written, "boc": fetched.boc}


def _identify(master: Mapping[str, Any]) -> BlockId:
    hashes = master["root_hash"], master["file_hash"]
    return BlockId(MASTERCHAIN, master["shard"], master["seqno"], *hashes)


def _find_top(call: Call, master: BlockId, address: Address) -> BlockId | None:
    """Return the block of an account's shard that a masterchain block commits, or None."""
    if address.workchain == MASTERCHAIN:
        return master
    shards = list_ancestors(int.from_bytes(address.account[:8], "big"))
    for row in call.reader.rows("v2/shards", mc_seqno=master.seqno):
        if row["workchain"] == address.workchain and row["shard"] in shards:
            return BlockId(*(row[name] for name in BlockId.__struct_fields__))
    return None
