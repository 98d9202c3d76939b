"""Reads blocks from a node's database folder: stopped, running, copied, or killed.

Blocks up to the node's shard client are complete. Where the archive ends earlier, as in a folder
that was copied file by file or is damaged, temporary packages continue it; blocks missing there are
reported as missing, not as the end of the chain. Blocks in temporary packages after the shard
client are read as well. A damaged seqno of the shard client that is too small would hide blocks and
make a follower undo them, so its block is compared with the archive's.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tonlake.ingest.blocks import (
    MASTERCHAIN_SHARD,
    BlockId,
    McBundle,
    McHead,
    RawBlock,
    ZeroState,
    name_mc_block,
)
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    BlockPruned,
    BlockUnavailable,
    EntryFlaw,
    SourceError,
)
from tonlake.ingest.source.node import tl
from tonlake.ingest.source.node.archive import Archive
from tonlake.ingest.source.node.packs import OPEN_INDEXES, find_newest_mc_block
from tonlake.ingest.source.node.recent import RecentBlocks
from tonlake.ingest.source.node.rocks import FollowedStore, Scratch, Store
from tonlake.ingest.source.node.slice import PACKAGES_FOLDER, GlobalIndex, SliceCache
from tonlake.ingest.source.node.statefile import read_zero_states
from tonlake.lake.account import MASTERCHAIN

SUPPORTED_VERSION = 2
SHARD_CLIENT_KEY = bytes.fromhex("268b010df1816f1f95c85343e3b35dfa0dc1176486a549e08c177ae151277fae")
INIT_BLOCK_KEY = bytes.fromhex("f2881431756ddf33e3c4f242039f7d30d16c00d2d7cd0b9bdefa8a7356d721d9")


def check_version(store: Store) -> None:
    """Raise SourceError unless the node's folder has the supported layout."""
    value = store.get(tl.pack_constructor(tl.DB_VERSION_KEY))
    if value is None:
        return  # written when a node upgrades an old folder; without it the layout is old
    version = tl.TlReader(value, f"{store.name}: db.state.dbVersion", tl.DB_VERSION).read_int()
    if version != SUPPORTED_VERSION:
        raise SourceError(f"{store.name}: layout {version}; this reader knows {SUPPORTED_VERSION}")


def read_shard_client(store: Store) -> BlockId | None:
    """Return the newest masterchain block whose shard blocks the node has all applied."""
    return _read_block(store, SHARD_CLIENT_KEY, tl.SHARD_CLIENT, "db.state.shardClient")


def read_init_block(store: Store) -> BlockId | None:
    """Return the key block or zero state from which the node would start."""
    return _read_block(store, INIT_BLOCK_KEY, tl.INIT_BLOCK_ID, "db.state.initBlockId")


def _read_block(store: Store, key: bytes, constructor: int, what: str) -> BlockId | None:
    value = store.get(key)
    if value is None:
        return None
    return tl.TlReader(value, f"{store.name}: {what}", constructor).read_block_id()


class ShardClient:
    """The newest masterchain block whose shard blocks the node has all applied; None if none."""

    def __init__(self, state: FollowedStore) -> None:
        self._state = state
        self.read()

    def read(self) -> None:
        """Read it again, after the store has caught up."""
        block = read_shard_client(self._state)
        if block is not None and (block.workchain, block.shard) != (MASTERCHAIN, MASTERCHAIN_SHARD):
            raise SourceError(
                f"{self._state.name}: the shard client is at {block}, not in the masterchain"
            )
        self.block, self.seqno = block, 0 if block is None else block.seqno

    def find_newest(self, archive: Archive) -> int:
        """Return the newest masterchain block known both here and to ``archive``."""
        self._check(archive)
        if archive.find_head(self.seqno) is not None:
            return self.seqno
        newest = max(0, min(self.seqno, archive.find_last()))
        # The archive's own number may be less than its handles show; the handles are right.
        while newest < self.seqno and archive.find_head(newest + 1) is not None:
            newest += 1
        return newest

    def _check(self, archive: Archive) -> None:
        if not self._differs_from(archive):
            return
        if self._state.catch_up():  # a node that is rolled back writes one store after another
            self.read()
            archive.refresh(rolled_back=True)
            if not self._differs_from(archive):
                return
        raise SourceError(
            f"{self._state.name}: the shard client is at {self.block}, but the archive has another"
            " block with that seqno: the node's folder is damaged"
        )

    def _differs_from(self, archive: Archive) -> bool:
        if self.block is None:
            return False
        if self.seqno > 0:
            return archive.has_conflicting(self.block)
        return self.seqno < 0 or read_init_block(self._state) not in (None, self.block)


STATE_FOLDER = "state"
INDEX_FOLDER = "files/globalindex"
NODE_FOLDERS = (INDEX_FOLDER, STATE_FOLDER)
BASECHAIN = 0
SEARCH_LIMIT = 256
"""Masterchain blocks tried at the start of the archive before the folder is rejected."""
SHARDS_BEHIND_LIMIT = 32
"""By how many blocks the masterchain may be ahead of the shards, as seen in killed nodes."""


@contextmanager
def _naming_remedy(db_dir: Path) -> Iterator[None]:
    """Add to the error of a damaged store how the blocks can be read without it."""
    try:
        yield
    except SourceError as error:
        raise SourceError(
            f"{error}; without it the archive's packages can be read alone:"
            f" tonlake ingest --packs {db_dir / PACKAGES_FOLDER}"
        ) from error


class NodeSource:
    """The blocks of a node's database folder, opened read-only; follows a running node."""

    def __init__(self, db_dir: Path, *, open_indexes: int, proofs: bool = False) -> None:
        self.db_dir = db_dir
        self._scratch = Scratch()
        try:
            with _naming_remedy(db_dir):
                self._state = FollowedStore(db_dir / STATE_FOLDER, STATE_FOLDER, self._scratch)
                check_version(self._state)
                self._client = ShardClient(self._state)
                index = GlobalIndex(
                    FollowedStore(db_dir / INDEX_FOLDER, INDEX_FOLDER, self._scratch)
                )
            slices = SliceCache(db_dir, self._scratch, open_indexes)
            self._archive = Archive(db_dir, index, slices, proofs=proofs)
            self._recent = RecentBlocks(db_dir, self._scratch, self._archive, proofs=proofs)
        except SourceError:
            self._scratch.close()
            raise
        self._newest: McBundle | None = None
        self._archived: int | None = None
        self._there = 0
        self._last: int | None = None
        self._holds_more: bool | None = None

    def refresh(self) -> None:
        """Catch up with a running node."""
        before = self._client.seqno
        if self._state.catch_up() or self._archived is None or self._archived < before:
            self._client.read()  # first: the stores read after it have all it calls complete
            self._archive.refresh(rolled_back=self._client.seqno < before)
            self._newest = self._archived = self._holds_more = self._last = None
        if self._recent.refresh():
            self._last = None

    def first_mc_seqno(self) -> int:
        """Return the oldest masterchain block that is present with its shard blocks."""
        first = self._archive.find_first()
        reason: BlockUnavailable | None = None
        for mc_seqno in range(first, min(first + SEARCH_LIMIT, self.last_mc_seqno() + 1)):
            try:
                with suppress(BlockCorrupt):  # reading the block reports it
                    self.read_bundle(mc_seqno)
            except (BlockNeverHad, BlockPruned) as error:
                reason = error
            else:
                return mc_seqno
        if reason is not None:
            raise SourceError(f"no masterchain block from {first} on is complete: {reason}")
        return first

    def last_mc_seqno(self) -> int:
        """Return the newest masterchain block of the node; 0 if it has none.

        It is the shard client's, or a later one that is present with all its shard blocks. A gap
        before it does not end the chain: ``read_bundle`` reports it.
        """
        if self._last is None:
            if self._archived is None:
                self._archived = self._find_last()
            self._there = self._recent.extend(self._archived, self._client.block)
            self._last = max(self._there, self._client.seqno)
        return self._last

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        """Like ``read_bundle``, but leave verifying file hashes of shard blocks to the decoder."""
        return self.read_bundle(mc_seqno, check_files=False)

    def read_bundle(self, mc_seqno: int, *, check_files: bool = True) -> McBundle:
        """Return one masterchain block and the shard blocks it commits."""
        if mc_seqno > self._client.seqno and mc_seqno > self.last_mc_seqno():
            reason = f"the node has completed masterchain blocks up to {self._last}"
            raise BlockNotYet(reason, block=name_mc_block(mc_seqno), file=STATE_FOLDER)
        if self._newest is not None and self._newest.mc_seqno == mc_seqno:
            return self._newest
        try:
            return self._archive.read_bundle(mc_seqno, check_files=check_files)
        except BlockNeverHad as error:
            return self._read_recent(mc_seqno, error)
        except BlockCorrupt as error:
            if not _is_cut(error):
                raise
            return self._read_recent(mc_seqno, error)

    def _read_recent(self, mc_seqno: int, error: BlockUnavailable) -> McBundle:
        try:
            last = self.last_mc_seqno()
            found = self._recent.read_bundle(mc_seqno)
        except (SourceError, BlockNeverHad):
            raise error from None
        if found is not None:
            return found
        if mc_seqno <= self._there or self._is_damaged(last):
            raise error
        reason = f"the archive ends with masterchain block {self._there}. {error}"
        raise BlockNotYet(reason, block=name_mc_block(mc_seqno), file=error.file) from error

    def _is_damaged(self, last: int) -> bool:
        """Return whether more is missing at the end than in a copy of a running node."""
        if last - self._there > SHARDS_BEHIND_LIMIT:
            return True
        if self._holds_more is None:
            newest = find_newest_mc_block(self.db_dir / PACKAGES_FOLDER)
            self._holds_more = newest > self._archive.find_last()
        return self._holds_more

    def find_signed(self, block_id: BlockId) -> RawBlock | None:
        """Return a shard block, committed or not; None if none; raise BlockCorrupt if damaged."""
        return self._recent.find_signed(block_id)

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the node's masterchain block at a seqno; None if it has none."""
        found = self._archive.find_head(mc_seqno) if mc_seqno <= self._client.seqno else None
        return found or self._recent.find_head(mc_seqno)

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return the zero states of the node's folder, the masterchain's first."""
        known = self._archive.find_zero_states((MASTERCHAIN, BASECHAIN))
        return read_zero_states(self.db_dir, known)

    def describe(self) -> dict[str, str]:
        """Return the fingerprint for the commit log: the node's init block and shard client."""
        init, client = read_init_block(self._state), read_shard_client(self._state)
        blocks = {"init_block": init, "shard_client": client}
        named = {name: f"{id_}:{id_.root_hash.hex()}" for name, id_ in blocks.items() if id_}
        return {"kind": "node", **named}

    def close(self) -> None:
        """Close every store and remove the private folders."""
        self._recent.close()
        self._archive.close()
        self._state.close()
        self._scratch.close()

    def _find_last(self) -> int:
        newest = self._client.find_newest(self._archive)
        missing = 0
        for mc_seqno in range(newest, 0, -1):
            try:
                self._archive.check_tops(mc_seqno)
                self._newest = self._archive.read_bundle(mc_seqno)
            except BlockNeverHad as error:
                missing += 1
                if missing > SHARDS_BEHIND_LIMIT or mc_seqno == 1:
                    raise SourceError(
                        f"none of the masterchain blocks {mc_seqno} to {newest} has all its"
                        f" shard blocks, so the folder cannot be ingested. {error}"
                    ) from error
            except BlockCorrupt as error:
                if not _is_cut(error):
                    return mc_seqno
            except BlockPruned as error:
                last = self._archive.find_last()
                if last > newest:
                    raise SourceError(
                        f"{STATE_FOLDER}: the shard client is at {newest}, although the archive"
                        f" continues to {last}: the node's folder is damaged. {error}"
                    ) from error
                break
            else:
                return mc_seqno
        return 0


def _is_cut(error: BlockCorrupt) -> bool:
    """Return whether a file merely ends too early, as in a copy of a running node."""
    return isinstance(error.__cause__, EntryFlaw) and error.__cause__.cut


def open_node(
    db_dir: Path, *, open_indexes: int = OPEN_INDEXES, proofs: bool = False
) -> NodeSource:
    """Open a node's database folder; raise SourceError if it is none, or damaged."""
    missing = [name for name in NODE_FOLDERS if not (db_dir / name).is_dir()]
    if missing:
        inner = all((db_dir / "db" / name).is_dir() for name in NODE_FOLDERS)
        raise SourceError(
            f"{db_dir} is not a database folder of a TON node: {', '.join(missing)} not found"
            + (": name the folder db inside it" if inner else "")
        )
    return NodeSource(db_dir, open_indexes=open_indexes, proofs=proofs)
