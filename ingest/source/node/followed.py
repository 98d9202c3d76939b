"""A small store of a node, followed while the node writes it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rocksdict import AccessType, Options

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.rocks import PAUSE_S, TRIES_UNCHANGED, Store, StoreFiles

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.source.node.scratch import Scratch

TRIES = 200
"""A store that changes all the time is tried for two seconds."""


class FollowedStore(Store):
    """A small store that its owner may be writing; ``catch_up`` shows what is new.

    Opened as a RocksDB secondary, which reads only what was added since the last time.
    """

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        """Open the store."""
        super().__init__(folder, name, scratch)
        self._seen: StoreFiles | None = None
        self.catch_up()

    def catch_up(self) -> bool:
        """Show what the owner wrote since; return False when its files did not change.

        Only what was added to a log is read on. When files came or went, the store is
        reopened: a secondary would prefer old values of a log to newer ones of tables. A log
        deleted during opening would leave a gap, so the shape must stay the same meanwhile.
        """
        failure, unchanged = None, 0
        for _ in range(TRIES):
            before = self.look()
            if before == self._seen:
                return False
            if self._seen is None or self._seen.shape != before.shape:
                self.close()
            try:
                self._read_on(before.manifest)
            except SourceError as error:  # the owner moved files meanwhile
                self.close()
                failure = error
            stable = self.look().shape == before.shape
            if stable and self._db is not None:
                self._seen = before
                return True
            self._seen = None
            unchanged += stable
            if unchanged >= TRIES_UNCHANGED:
                break
            time.sleep(PAUSE_S)
        self.close()
        raise failure or SourceError(f"{self.name}: its files change faster than they are read")

    def close(self) -> None:
        """Close the store and remove its private folder."""
        super().close()
        self._seen = None

    def _read_on(self, manifest: str) -> None:
        self._link_manifest(manifest)
        if self._db is None:
            self._open_followed()
        with self._named_errors():
            self._opened().try_catch_up_with_primary()

    def _open_followed(self) -> None:
        """Open as a secondary, and make sure that it is not behind a strict opening.

        A secondary that meets a damaged table falls back to an older state without a word.
        """
        self._open(Options(raw_mode=True), AccessType.read_only(error_if_log_file_exist=False))
        newest = self._opened().latest_sequence_number()
        self._opened().close()
        secondary = str(self._private_folder() / "secondary")
        options = Options(raw_mode=True)
        options.set_max_file_opening_threads(1)  # each catch-up starts all of them, for nothing
        self._open(options, AccessType.secondary(secondary))
        found = self._opened().latest_sequence_number()
        if found < newest:
            raise SourceError(f"{self.name}: its files are damaged: write {found} of {newest}")
