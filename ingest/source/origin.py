"""Opens the block source that a command names: a node folder, packages or lite servers."""

from pathlib import Path

import msgspec

from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.source.node.source import open_node


class Origin(msgspec.Struct, frozen=True):
    """Exactly one of: a node's database folder, a folder of packages, a network's configuration."""

    node: Path | None = None
    packs: Path | None = None
    liteserver: Path | None = None

    def open(self, settings: IngestSections) -> BlockSource:
        """Open the source."""
        if self.node is not None:
            return open_node(self.node, proofs=settings.ingest.block_proofs)
        if self.liteserver is not None:
            # Importing these takes half a second; other commands do not need them.
            from tonlake.ingest.source.liteserver.config import read_config  # noqa: PLC0415
            from tonlake.ingest.source.liteserver.source import LiteSource  # noqa: PLC0415

            return LiteSource(read_config(self.liteserver), settings.liteserver)
        return PackSource(self.packs or Path())
