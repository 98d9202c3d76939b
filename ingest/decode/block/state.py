"""Decodes shard states, complete ones and a block's Merkle update, to rows of the lake.

TL-B: shard_state#9023afe2 (ShardStateUnsplit), split_state#5f327da5, ShardAccounts =
HashmapAugE 256 ShardAccount DepthBalanceInfo, account_descr$_, masterchain_state_extra#cc26;
account_none$0, account$1, storage_info$_, account_storage$_, account_uninit$00, account_frozen$01,
account_active$1, StateInit; !merkle_update#04 old_hash new_hash old_depth new_depth ^old ^new;
libraries:(HashmapE 256 LibDescr), shared_lib_descr$00 lib:^Cell publishers:(Hashmap 256 True).

Two forms of StorageInfo are supported: with ``storage_extra:StorageExtraInfo`` (from global version
11) and, before it, with ``public_cells:(VarUInteger 7)`` in the same place. For nearly every
account both are 000. If not, and the account does not end exactly where its cell ends, the other
form is tried.

Cells are stored with the hash, level and child hashes that they have in the state, not in the block
that introduced them: inside a Merkle update everything above a pruned branch is one level higher. A
cell under *d* Merkle cells of the state has its state hash at level *d*; there the update's own
pruned branches have a level above *d*, and pruned branches of the state itself do not. The new side
of an update contains every cell that is new in the state. Other cells are pruned branches, which an
earlier update or the zero state contains, with one exception that ``_find_carried`` handles.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.decode.block.header import (
    BlockHeader,
    check_tag,
    read_parts,
    read_shard_ident,
    skip_currencies,
)
from tonlake.ingest.decode.block.message import read_address, read_extra_currencies
from tonlake.ingest.decode.cell.dictionary import (
    find_leaf,
    iter_hashmap,
    iter_hashmap_slice,
    load_label,
)
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT, CellSlice
from tonlake.ingest.decode.cell.tree import MAX_LEVEL, ORDINARY, PRUNED, CellTree
from tonlake.ingest.decode.rows import Row, RowSet
from tonlake.ingest.errors import BocError, DecodeError, IngestError
from tonlake.lake.account import MASTERCHAIN

ACCOUNT_BITS = 256
STATE_TAG = 0x9023AFE2
_SPLIT_STATE_TAG = 0x5F327DA5
_MC_STATE_EXTRA_TAG = 0xCC26


class ParsedShardState(msgspec.Struct, frozen=True):
    """ShardStateUnsplit: its identity, and the cells of its parts."""

    workchain: int
    shard: int
    seqno: int
    gen_utime: int
    accounts: int
    totals: int
    custom: int | None


class ShardAccount(NamedTuple):
    """An entry of ShardAccounts: the Account cell and the account's last transaction."""

    account: bytes
    cell: int
    last_trans_lt: int
    last_trans_hash: bytes


def read_state(tree: CellTree, cell: int) -> ParsedShardState:
    """Read the top of a ShardStateUnsplit."""
    state = tree.slice(cell)
    check_tag(state, 32, STATE_TAG, "shard state")
    state.load_int(32)  # global_id
    workchain, shard = read_shard_ident(state)
    seqno, _vert_seqno, gen_utime = (state.load_uint(32) for _ in range(3))
    state.skip(64 + 32)  # gen_lt, min_ref_mc_seqno
    state.load_ref()  # out_msg_queue_info
    state.load_bit()  # before_split
    accounts, totals = state.load_ref(), state.load_ref()
    custom = state.load_maybe_ref()
    return ParsedShardState(workchain, shard, seqno, gen_utime, accounts, totals, custom)


def read_state_sides(tree: CellTree, cell: int) -> list[ParsedShardState]:
    """Read the old side of an update: up to two states, which an after_merge block joins."""
    if tree.kind(cell) == PRUNED:
        return []
    is_split = tree.slice(cell).peek_uint(32) == _SPLIT_STATE_TAG
    states = tree.links[cell] if is_split else (cell,)
    return [read_state(tree, state) for state in states if tree.kind(state) != PRUNED]


def iter_shard_accounts(tree: CellTree, cell: int) -> Iterator[ShardAccount]:
    """Yield the entries of ShardAccounts by account; pruned entries are left out."""
    root = None if tree.kind(cell) == PRUNED else tree.slice(cell).load_maybe_ref()
    if root is not None:
        for key, value in iter_hashmap(tree, root, ACCOUNT_BITS, skip_pruned=True):
            yield load_leaf(key, value)


def find_account(tree: CellTree, cell: int, account: bytes) -> ShardAccount | None:
    """Return the entry of an account in ShardAccounts; None if there is none."""
    if tree.kind(cell) != ORDINARY:
        raise BocError("the accounts of the state are pruned")
    root = tree.slice(cell).load_maybe_ref()
    key = int.from_bytes(account, "big")
    leaf = None if root is None else find_leaf(tree, root, key, ACCOUNT_BITS)
    return None if leaf is None else load_leaf(key, leaf)


def load_leaf(key: int, leaf: CellSlice) -> ShardAccount:
    """Read a leaf of ShardAccounts after its label: the augmentation, and account_descr$_."""
    leaf.load_uint(5)  # DepthBalanceInfo.split_depth:(#<= 30)
    skip_currencies(leaf)
    account_cell, last_hash = leaf.load_ref(), leaf.load_bytes(32)
    return ShardAccount(key.to_bytes(32, "big"), account_cell, leaf.load_uint(64), last_hash)


def read_libraries(tree: CellTree, state: ParsedShardState) -> int | None:
    """Return the root of the public libraries (HashmapE 256 LibDescr); None if there are none."""
    totals = tree.slice(state.totals)
    totals.load_uint(128)  # overload_history, underload_history
    skip_currencies(totals)  # total_balance
    skip_currencies(totals)  # total_validator_fees
    return totals.load_maybe_ref()


def read_config(tree: CellTree, state: ParsedShardState) -> int | None:
    """Return the root of the configuration (Hashmap 32 ^Cell); None outside the masterchain."""
    if state.custom is None:
        return None
    extra = tree.slice(state.custom)
    check_tag(extra, 16, _MC_STATE_EXTRA_TAG, "masterchain state extra")
    extra.load_maybe_ref()  # shard_hashes
    extra.load_bytes(32)  # config_addr
    return extra.load_ref()


CellAt = tuple[int, int]
"""A cell and its Merkle depth: the number of Merkle cells of the state above it."""


class StateCells:
    """Appends rows of ``state_cells`` for any number of blocks, one per hash."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self._seen: set[bytes] = set()

    def keep(self, tree: CellTree, roots: Iterable[CellAt], mc_seqno: int) -> set[bytes]:
        """Append all cells under ``roots``; return the state hashes of those that are pruned."""
        pruned: set[bytes] = set()
        seen = self._seen
        for depth, cells in iter_depths(tree, roots):
            tree.hash_all(cells)
            for cell in cells:
                state_hash = tree.pruned_hash(cell, depth)
                if state_hash is not None:
                    pruned.add(state_hash)
                    continue
                state_hash = tree.hash(cell, depth)
                if state_hash not in seen:
                    seen.add(state_hash)
                    self._rows.append((state_hash, mc_seqno, *pack_cell(tree, cell, depth)))
        return pruned


def iter_depths(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[tuple[int, list[int]]]:
    """Yield each Merkle depth, ascending, with all cells under ``roots`` at that depth."""
    waiting: dict[int, dict[int, None]] = {}
    for cell, depth in roots:
        waiting.setdefault(depth, {})[cell] = None
    cells, links = tree.cells, tree.links
    while waiting:
        depth = min(waiting)
        met = waiting.pop(depth)
        found = list(met)
        for cell in found:
            children = links[cell]
            # A Merkle cell: no other exotic cell has children.
            if children and cells[cell][0] & EXOTIC_BIT:
                waiting.setdefault(depth + 1, {}).update(dict.fromkeys(children))
                continue
            for child in children:
                if child not in met:
                    met[child] = None
                    found.append(child)
        yield depth, found


NONEXIST_HASH = sha256(bytes.fromhex("000140")).digest()
"""Hash of account_none$0, a cell of one 0 bit: the state hash of a destroyed account."""

STORAGE_EXTRA_VERSION = 11
"""Global version from which accounts are stored with StorageExtraInfo."""

AccountRow = tuple[Any, ...]
"""A row of the table ``account_states``."""

_STORAGE_EXTRA_TAG = 1
_VAR_UINT_7_BITS = 3


class ParsedAccount(msgspec.Struct, frozen=True):
    """A parsed Account cell: columns of ``account_states``, or the cells that they hash."""

    account_status: str
    balance: int = 0
    extra_currencies: int | None = None
    frozen_hash: bytes | None = None
    code: int | None = None
    data: int | None = None
    library: int | None = None
    fixed_prefix_length: int | None = None
    special_tick: bool | None = None
    special_tock: bool | None = None
    storage_cells: int | None = None
    storage_bits: int | None = None
    storage_last_paid: int | None = None
    storage_due_payment: int | None = None
    storage_last_trans_lt: int | None = None


NONEXIST = ParsedAccount("nonexist")


_FIRST_PLAIN = ParsedAccount.__struct_fields__.index("fixed_prefix_length")
"""From here on the fields of ``ParsedAccount`` are columns in the same order."""


class StateAt(msgspec.Struct, frozen=True):
    """The block after which a state is valid."""

    workchain: int
    shard: int
    block_seqno: int
    mc_seqno: int
    utime: int


class Touched(NamedTuple):
    """An account with transactions in a block: its last one, and its new state hash."""

    account: bytes
    last_trans_lt: int
    last_trans_hash: bytes
    new_hash: bytes


def read_account(tree: CellTree, cell: int, *, global_version: int | None = None) -> ParsedAccount:
    """Read an Account cell; ``global_version`` is that of the block, None if unknown."""
    start = tree.slice(cell)
    if not start.load_bit():
        _check_end(start)
        return NONEXIST
    if read_address(start)[0] not in ("std", "var"):
        raise DecodeError("account: its address is not an internal address")
    used = start.load_var_uint(_VAR_UINT_7_BITS), start.load_var_uint(_VAR_UINT_7_BITS)
    if not start.peek_uint(3):
        return _read_storage(start, used, storage_extra=True)
    is_old = global_version is not None and global_version < STORAGE_EXTRA_VERSION
    try:
        return _read_storage(start.copy(), used, storage_extra=not is_old)
    except IngestError:
        return _read_storage(start, used, storage_extra=is_old)


def _read_storage(cell: CellSlice, used: tuple[int, int], *, storage_extra: bool) -> ParsedAccount:
    """Read everything after StorageUsed.cells and .bits, to the end of the cell."""
    if not storage_extra:
        cell.load_var_uint(_VAR_UINT_7_BITS)  # public_cells
    elif (tag := cell.load_uint(3)) == _STORAGE_EXTRA_TAG:
        cell.load_bytes(32)  # dict_hash
    elif tag:
        raise DecodeError(f"account: StorageExtraInfo with tag {tag}")
    last_paid = cell.load_uint(32)
    due_payment = cell.load_coins() if cell.load_bit() else None
    last_trans_lt = cell.load_uint(64)
    balance, extra_currencies = cell.load_coins(), cell.load_maybe_ref()
    if cell.load_bit():
        state = read_state_init(cell)
    elif cell.load_bit():
        state = ParsedAccount("frozen", frozen_hash=cell.load_bytes(32))
    else:
        state = ParsedAccount("uninit")
    _check_end(cell)
    return msgspec.structs.replace(
        state,
        balance=balance,
        extra_currencies=extra_currencies,
        storage_cells=used[0],
        storage_bits=used[1],
        storage_last_paid=last_paid,
        storage_due_payment=due_payment,
        storage_last_trans_lt=last_trans_lt,
    )


def read_state_init(cell: CellSlice) -> ParsedAccount:
    """Read StateInit, as that of an active account."""
    fixed_prefix_length = cell.load_uint(5) if cell.load_bit() else None
    tick, tock = (cell.load_bit(), cell.load_bit()) if cell.load_bit() else (None, None)
    return ParsedAccount(
        "active",
        fixed_prefix_length=fixed_prefix_length,
        special_tick=tick,
        special_tock=tock,
        code=cell.load_maybe_ref(),
        data=cell.load_maybe_ref(),
        library=cell.load_maybe_ref(),
    )


def _check_end(cell: CellSlice) -> None:
    if cell.bits_left or cell.refs_left:
        raise DecodeError(f"account: {cell.bits_left} bits and {cell.refs_left} references left")


def make_row(tree: CellTree, at: StateAt, touched: Touched, state: ParsedAccount) -> AccountRow:
    """Return the row of ``account_states`` of an account after a block."""
    return (
        at.workchain,
        touched.account,
        at.mc_seqno,
        at.shard,
        at.block_seqno,
        at.utime,
        touched.new_hash,
        state.account_status,
        state.balance,
        _format_currencies(tree, state.extra_currencies),
        touched.last_trans_lt,
        touched.last_trans_hash,
        state.frozen_hash,
        _hash_of(tree, state.code),
        _hash_of(tree, state.data),
        _hash_of(tree, state.library),
        *msgspec.structs.astuple(state)[_FIRST_PLAIN:],
        _hash_of(tree, state.extra_currencies),
    )


def _hash_of(tree: CellTree, cell: int | None) -> bytes | None:
    return None if cell is None else tree.hash(cell, 0)


def _format_currencies(tree: CellTree, root: int | None) -> str | None:
    """Return the extra currencies as JSON; None if there are none or part of them is pruned."""
    if root is None:
        return None
    below = [cell for _depth, cells in iter_depths(tree, [(root, 0)]) for cell in cells]
    return None if PRUNED in map(tree.kind, below) else read_extra_currencies(tree, root)


def decode_update(
    tree: CellTree,
    header: BlockHeader,
    mc_seqno: int,
    touched: Sequence[Touched],
    rows: RowSet,
    cells: StateCells,
) -> None:
    """Add the changes of a block; ``touched`` are all accounts with transactions in it."""
    parts = read_parts(tree)
    old, new = tree.links[parts.state_update]
    at = StateAt(header.workchain, header.shard, header.seqno, mc_seqno, header.gen_utime)
    states, roots = _read_accounts(tree, new, at, touched, header.gen_software_version)
    rows["account_states"].extend(states)
    if header.workchain == MASTERCHAIN:
        libraries, contents = read_library_changes(tree, old, new, mc_seqno)
        rows["libraries"].extend(libraries)
        roots += contents
    pruned = cells.keep(tree, [(root, 0) for root in roots], mc_seqno)
    if pruned:
        cells.keep(tree, _find_carried(tree, old, parts.extra, pruned), mc_seqno)


def _read_accounts(
    tree: CellTree, new: int, at: StateAt, touched: Sequence[Touched], global_version: int | None
) -> tuple[list[AccountRow], list[int]]:
    rows: list[AccountRow] = []
    roots: list[int] = []
    known = iter_shard_accounts(tree, read_state(tree, new).accounts) if touched else ()
    cells = {each.account: each.cell for each in known}
    for one in touched:
        state = NONEXIST
        if one.new_hash != NONEXIST_HASH:
            cell = cells.get(one.account)
            if cell is None or tree.hash(cell, 0) != one.new_hash:
                raise DecodeError(
                    f"state update: account {at.workchain}:{one.account.hex()} has state "
                    f"{one.new_hash.hex()} after block {at.block_seqno}, but the update has "
                    f"{'none' if cell is None else tree.hash(cell, 0).hex()}"
                )
            state = read_account(tree, cell, global_version=global_version)
            roots.append(cell)
        rows.append(make_row(tree, at, one, state))
    return rows, roots


def _find_carried(tree: CellTree, old: int, extra: int, pruned: set[bytes]) -> list[CellAt]:
    """Find pruned cells new to accounts: parts of messages that were waiting in the queue.

    The node prunes whatever the old state contains anywhere, including the shard's own queue; the
    block's extra has the complete message.
    """
    accounts = [(state.accounts, 0) for state in read_state_sides(tree, old)]
    sides = list(iter_depths(tree, accounts))
    missing = pruned - {tree.hash(cell, depth) for depth, cells in sides for cell in cells}
    if not missing:
        return []
    # In the extra the update prunes nothing: a cell has no levels but its own.
    return [
        (cell, MAX_LEVEL)
        for _depth, cells in iter_depths(tree, [(extra, 0)])
        for cell in cells
        if tree.hash(cell) in missing and tree.kind(cell) != PRUNED
    ]


LibraryRow = tuple[int, bytes, bool, list[bytes]]
"""A row of the table ``libraries``."""

Entry = tuple[int, list[bytes]]
"""LibDescr: the library's root cell and its publishers."""

_KEY_BITS = 256


def read_library_changes(
    tree: CellTree, old: int, new: int, mc_seqno: int
) -> tuple[list[LibraryRow], list[int]]:
    """Compare the libraries on both sides of an update; return rows and the new library cells.

    Pruned libraries did not change. If the update prunes some publishers as unchanged, the row
    has only the others.
    """
    state = read_state(tree, new)
    if tree.kind(state.totals) == PRUNED:
        return [], []
    after, nodes = _walk(tree, _find_root(tree, state), frozenset())
    sides = read_state_sides(tree, old)
    old_root = _find_root(tree, sides[0]) if sides else None
    before, _ = _walk(tree, old_root, frozenset())
    # A branch that is also on the new side, pruned or not, lost nothing.
    replaced, _ = _walk(tree, old_root, nodes)
    rows, contents = [], []
    for key, (library, publishers) in after.items():
        if key not in before or _describe(tree, before[key]) != _describe(tree, after[key]):
            rows.append((mc_seqno, key, True, publishers))
            contents.append(library)
    rows += [(mc_seqno, key, False, []) for key in replaced if key not in after]
    return rows, contents


def read_all_libraries(
    tree: CellTree, root: int | None, mc_seqno: int
) -> list[tuple[LibraryRow, int]]:
    """Return a row and the library's cell for every entry of a complete dictionary."""
    entries, _ = _walk(tree, root, frozenset())
    return [
        ((mc_seqno, key, True, publishers), library)
        for key, (library, publishers) in entries.items()
    ]


def _walk(
    tree: CellTree, root: int | None, unchanged: frozenset[bytes]
) -> tuple[dict[bytes, Entry], frozenset[bytes]]:
    """Return the entries present and not under an ``unchanged`` node, and all node hashes.

    A node is visited once: one dictionary never contains equal nodes in two places, since the key
    of an entry is the hash of its library.
    """
    entries: dict[bytes, Entry] = {}
    met: set[bytes] = set()
    todo = [] if root is None else [(root, 0, _KEY_BITS)]
    while todo:
        cell, key, left = todo.pop()
        node_hash = tree.hash(cell, 0)
        if node_hash in met or node_hash in unchanged:
            continue
        met.add(node_hash)
        if tree.kind(cell) == PRUNED:
            continue
        node = tree.slice(cell)
        key, left = load_label(node, left, key)
        if not left:
            check_tag(node, 2, 0, "library description")
            library = node.load_ref()
            publishers = iter_hashmap_slice(node, _KEY_BITS, skip_pruned=True)
            held = [publisher.to_bytes(32, "big") for publisher, _ in publishers]
            entries[key.to_bytes(32, "big")] = library, held
            continue
        zero, one = node.load_ref(), node.load_ref()
        todo += [(one, key << 1 | 1, left - 1), (zero, key << 1, left - 1)]
    return entries, frozenset(met)


def _describe(tree: CellTree, entry: Entry) -> tuple[bytes, list[bytes]]:
    return tree.hash(entry[0], 0), entry[1]


def _find_root(tree: CellTree, state: ParsedShardState) -> int | None:
    return None if tree.kind(state.totals) == PRUNED else read_libraries(tree, state)
