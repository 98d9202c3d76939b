"""Every block that a node has ever written, and so the expected answers."""

from base64 import b64encode
from collections.abc import Iterator

import msgspec

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundles


class Written(msgspec.Struct, frozen=True):
    """A masterchain block: seqno, predecessor, and the blocks it commits; hashes in base64."""

    seqno: int
    before: str | None
    blocks: frozenset[str]
    transactions: frozenset[str]


class Model:
    """Masterchain blocks of all chains that a node has had, by root hash."""

    def __init__(self) -> None:
        self._written: dict[str, Written] = {}
        self.complete_s: dict[str, float] = {}
        self.served_s: dict[str, float] = {}

    def __contains__(self, root_hash: str) -> bool:
        """Return whether the node has ever written a block."""
        return root_hash in self._written

    def add(self, bundle: McBundle, before: McBundle | None) -> str:
        """Add a bundle about to be written; return its root hash."""
        hashes = decode_bundles([bundle])["transactions"]["hash"].to_pylist()
        name = name_of(bundle)
        self._written[name] = Written(
            bundle.mc_seqno,
            None if before is None else name_of(before),
            frozenset(encode_hash(block.id.root_hash) for block in bundle.blocks),
            frozenset(map(encode_hash, hashes)),
        )
        return name

    def walk_back(self, tip: str) -> Iterator[tuple[str, Written]]:
        name: str | None = tip
        while name is not None:
            yield name, self._written[name]
            name = self._written[name].before

    def find(self, tip: str, seqno: int) -> Written:
        """Return the block with a seqno of the chain that ends with ``tip``."""
        return next(one for _, one in self.walk_back(tip) if one.seqno == seqno)

    def note_served(self, tip: str, now_s: float) -> None:
        """Note that a chain is available from now on."""
        for name, _one in self.walk_back(tip):
            if name in self.served_s:
                return
            self.served_s[name] = now_s

    def list_delays(self, names: list[str]) -> list[float]:
        """Return the seconds from complete to served, for all blocks ever served."""
        return [self.served_s[one] - self.complete_s[one] for one in names if one in self.served_s]


def name_of(bundle: McBundle) -> str:
    """Return the root hash of its masterchain block."""
    return encode_hash(bundle.blocks[0].id.root_hash)


def encode_hash(value: bytes) -> str:
    """Return a hash in the format of the API."""
    return b64encode(value).decode()
