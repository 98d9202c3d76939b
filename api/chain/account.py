"""Reads the state of an account after any masterchain block, from the lake or lite servers.

An account that no block in the lake touches had the same state in all of them. A state that lite
servers prove at one block is valid until a block touches the account, if no blocks are missing in
between.
"""

import base64
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.block import (
    STATE_UNKNOWN,
    Row,
    find_configuration_seqno,
    find_master,
    find_range_start,
    knows_every_account,
    list_ancestors,
    name_coverage,
)
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.errors import LiteServerError
from tonlake.api.request.call import Call
from tonlake.api.settings import Settings
from tonlake.api.text.encoding import Address
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.state import StateAt, Touched, make_row, read_account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.wallet import read_wallet
from tonlake.ingest.derive.tvm.call import join_shard_account
from tonlake.ingest.errors import BocError, SourceError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.cache import Cache
from tonlake.lake.commit.rewrite import keep_fetched
from tonlake.lake.copy.pull import STAGING_FOLDER
from tonlake.lake.errors import LakeError
from tonlake.lake.schema import ACCOUNT_STATES, FETCHED_ACCOUNTS
from tonlake.queries.errors import QueryNeeded

if TYPE_CHECKING:
    from tonlake.ingest.source.liteserver.query import StateServers


ZERO_HASH = bytes(32)
_ABSENT: dict[str, Any] = {
    "hash": None,
    "balance": 0,
    "extra_currencies": None,
    "last_trans_lt": 0,
    "last_trans_hash": ZERO_HASH,
    "frozen_hash": None,
    "code_hash": None,
    "data_hash": None,
}


class AccountAtBlock(msgspec.Struct, frozen=True):
    """An account after a masterchain block; all fields are empty if it does not exist."""

    address: Address
    master: dict[str, Any]
    state_hash: bytes | None
    balance: int
    extra_currencies: str | None
    last_trans_lt: int
    last_trans_hash: bytes
    frozen_hash: bytes | None
    code_hash: bytes | None
    data_hash: bytes | None
    bags: Mapping[bytes, bytes] = {}
    """Cells by hash, for an account fetched from lite servers."""


def find_state(call: Call, params: AccountParams) -> AccountAtBlock:
    """Return the state of an account after the masterchain block ``params.seqno`` or the newest."""
    address = params.address.address
    master = find_master(call, params.seqno)
    row = call.reader.one(
        "v2/account_state",
        workchain=address.workchain,
        account=address.account,
        mc_seqno=master["seqno"],
    )
    return make_state(call, address, master, row)


def make_state(call: Call, address: Address, master: Row, row: Row | None) -> AccountAtBlock:
    """Return the state of an account after a masterchain block from ``row``, its newest state."""
    seqno = master["seqno"]
    # A row from before a gap may be stale, and a missing row proves nothing after one.
    known = row is not None and row["mc_seqno"] >= find_range_start(call, seqno)
    bags: Mapping[bytes, bytes] = {}
    if not known and not knows_every_account(call, seqno):
        fetched = find_fetched(call, address, seqno)
        if fetched is None:
            raise LiteServerError(
                f"{STATE_UNKNOWN}: {name_coverage(call)}, "
                f"and there is no transaction of {address} in that range up to {seqno}"
            )
        row, bags = fetched.row, fetched.bags
    found = _ABSENT if row is None or row["account_status"] == "nonexist" else row
    rest = {name: found[name] for name in _ABSENT if name != "hash"}
    return AccountAtBlock(address, dict(master), found["hash"], **rest, bags=bags)


def find_utime(call: Call, state: AccountAtBlock) -> int:
    """Return the block time of the account's shard, or of the masterchain without such a shard."""
    shards = list_ancestors(int.from_bytes(state.address.account[:8], "big"))
    seqno, reader = state.master["seqno"], call.reader
    # The rows of the newest block are requested most often, and are few.
    ask = reader.lasting_rows if seqno == reader.snapshot.last_mc_seqno else reader.rows
    utime: int = state.master["gen_utime"]
    for row in ask("v2/shard_utimes", mc_seqnos=[seqno]):
        if row["workchain"] == state.address.workchain and row["shard"] in shards:
            utime = row["gen_utime"]
    return utime


def read_cells(call: Call, state: AccountAtBlock) -> tuple[bytes | None, bytes | None]:
    """Return code and data of a state as bags of cells; None for a missing one."""
    roots = (state.code_hash, state.data_hash)
    cells = _read_cells(call, state, roots)
    if not {cell_hash for cell_hash in roots if cell_hash is not None} <= cells.keys():
        raise LiteServerError(
            f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of the "
            f"code or data of {state.address}"
        )
    code, data = (None if cell_hash is None else cells[cell_hash] for cell_hash in roots)
    return code, data


def _read_cells(
    call: Call, state: AccountAtBlock, roots: Sequence[bytes | None]
) -> Mapping[bytes, bytes]:
    """Return the cells that the lake or lite servers have, as bags of cells by root hash."""
    if state.bags:
        return state.bags
    cells = read_cell_trees(call.reader, roots)
    if {*roots} - {None} <= cells.keys() or state.state_hash is None:
        return cells
    fetched = find_bags(call, state.address, state.master["seqno"], state.state_hash)
    return {**cells, **fetched}


def read_shard_account(call: Call, state: AccountAtBlock) -> bytes:
    """Return ShardAccount (account state and last transaction) as a bag of cells."""
    account = None
    if state.state_hash is not None:
        account = _read_cells(call, state, [state.state_hash]).get(state.state_hash)
        if account is None:
            raise LiteServerError(
                f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of "
                f"{state.address}"
            )
    return join_shard_account(account, state.last_trans_hash, state.last_trans_lt)


_TABLE: tuple[tuple[str, str], ...] = (
    ("wallet v1 r1", "oM/CxIruFqJx8s/AtzgtgXVs7LEBfQd/qqs7tgL2how="),
    ("wallet v1 r2", "1JAvzJ+tdGmPqONTIgpo2g3PcuMryy657gQhfBfTBiw="),
    ("wallet v1 r3", "WHzHie/xyE9G7DeX5F/ICaFP9a4k8eDHpqmcydyQYf8="),
    ("wallet v2 r1", "XJpeaMEI4YchoHxC+ZVr+zmtd+xtYktgxXbsiO7mUyk="),
    ("wallet v2 r2", "/pUw0yQ4Uwg+8u8LTCkIwKv2+hwx6iQ6rKpb+MfXU/E="),
    ("wallet v3 r1", "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE="),
    ("wallet v3 r2", "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk="),
    ("wallet v4 r1", "ZN1UgFUixb6KnbWc6gEFzPDQh4bKeb64y3nogKjXMi0="),
    ("wallet v4 r2", "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA="),
    ("wallet v5 beta", "89fKU0k97trCizgZhqhJQDy6w9LFhHea8IEGWvCsS5M="),
    ("wallet v5 r1", "IINLe3KxEhR+Gy+0V7hOdNGjDwT3N9T2KmaOlVLSty8="),
)
WALLETS = {base64.b64decode(text): name for name, text in _TABLE}
"""Wallet versions by code hash, without highload wallets and others that have no seqno."""


def read_wallet_data(code_hash: bytes, data: bytes | None) -> dict[str, Any]:
    """Return the fields of a wallet from a bag of its data; {} if that is short or exotic."""
    try:
        tree = parse_boc(data or b"")
        found = read_wallet(code_hash, tree.slice(tree.roots[0])) or {}
    except BocError:
        return {}
    names = ("seqno", "wallet_id", "is_signature_allowed")
    return {name: found[name] for name in names if found.get(name) is not None}


LOG = logging.getLogger("tonlake.api")

TIMEOUT_MS = 2000
"""Timeout for one lite server to return a state, before the next one is asked."""

KEEP_S = 2.0
"""Interval between commits of fetched accounts."""

IN_MEMORY = 1000
"""Maximum fetched accounts in memory, including accounts that do not exist."""
_CONFIGS = 4
_Key = tuple[int, bytes]


class FetchedAccount(msgspec.Struct, frozen=True):
    """A fetched account: its row of ``account_states`` (None: it does not exist), cells by hash."""

    mc_seqno: int
    row: dict[str, Any] | None
    bags: Mapping[bytes, bytes] = {}
    boc: bytes = b""


class AccountFetcher:
    """Fetches accounts for the API and commits them to the lake if it is writable."""

    def __init__(self, lake_dir: Path, servers: "StateServers", settings: Settings) -> None:
        """Take ownership of ``servers``; ``close`` commits what is left and closes them."""
        self._lake_dir, self._servers, self._settings = lake_dir, servers, settings
        self._lock = threading.Lock()
        self._known: Cache[_Key, FetchedAccount] = Cache(IN_MEMORY)
        self._configs: Cache[int, dict[int, bytes]] = Cache(_CONFIGS)
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
        return found if found is not None and first <= found.mc_seqno <= mc_seqno else None

    def fetch(self, call: Call, address: Address) -> FetchedAccount:
        """Fetch an account as of the newest block of the call's snapshot.

        Raises SourceError if no lite server can be reached, has the state, or gives a valid proof.
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
            fetched = describe_fetched(address.workchain, touched, found.boc, master.seqno)
        key = address.workchain, address.account
        with self._lock:
            self._known.put(key, fetched)
            if self._keeps and found is not None and len(self._due) < IN_MEMORY:
                self._due[key] = fetched
        return fetched

    def fetch_config(self, call: Call, master: Mapping[str, Any]) -> dict[int, bytes]:
        """Fetch the configuration after a masterchain block."""
        key_seqno = find_configuration_seqno(master)
        with self._lock:
            found = self._configs.get(key_seqno)
        if found is None:
            if not call.reader.may_query:
                raise QueryNeeded("the configuration must be fetched")
            found = self._servers.ask_config(_identify(master))
            with self._lock:
                self._configs.put(key_seqno, found)
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
        places = [{"workchain": key[0], "account": key[1]} for key in due]
        written = [(fetched.row or {}) | {"boc": fetched.boc} for fetched in due.values()]
        listed = [row | place for row, place in zip(written, places, strict=True)]
        rows = pa.Table.from_pylist(listed, schema=FETCHED_ACCOUNTS.arrow)
        most = self._settings.liteserver.kept_accounts
        try:
            keep_fetched(self._lake_dir, rows, most, self._settings.lake)
        except (LakeError, OSError) as error:
            self._keeps = False
            LOG.warning("accounts from lite servers are not kept in the lake: %s", error)


def find_fetched(
    call: Call, address: Address, mc_seqno: int, state_hash: bytes | None = None
) -> FetchedAccount | None:
    """Return an account after a masterchain block if no block in the lake shows its state.

    It comes from memory, from the table ``fetched_accounts`` or, for the newest block, from lite
    servers. None if there is none; if a fetch failed, a warning of the response says why. With
    ``state_hash``, known from the lake, the state with that hash is returned, fetched at any block.
    """
    newest = call.reader.snapshot.last_mc_seqno
    span = (find_range_start(call, mc_seqno), mc_seqno) if state_hash is None else (0, newest)
    found: FetchedAccount | None = None
    if call.fetcher is not None:
        found = call.fetcher.recall(address, *span)
    if found is None or not _has(found, state_hash):
        found = _read_fetched(call, address, span, state_hash)
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


def _read_fetched(
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
    return describe_fetched(address.workchain, touched, row["boc"], row["mc_seqno"])


def describe_fetched(workchain: int, touched: Touched, boc: bytes, mc_seqno: int) -> FetchedAccount:
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
