"""Follows a small RocksDB store while the node writes it."""

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
"""Attempts to open a store that keeps changing: two seconds in all."""


class FollowedStore(Store):
    """A small store that the node may be writing; ``catch_up`` makes new values visible.

    It is opened as a RocksDB secondary, which reads only what was added since the last time.
    """

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        """Open the store."""
        super().__init__(folder, name, scratch)
        self._seen: StoreFiles | None = None
        self.catch_up()

    def catch_up(self) -> bool:
        """Make the node's new writes visible; return False if its files did not change.

        Only additions to a log are read incrementally. When files were created or deleted, the
        store is reopened, since a secondary would prefer old values of a log to newer ones of
        tables. The set of files must not change meanwhile: a log deleted during opening would
        leave a gap.
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
            except SourceError as error:  # the node replaced files meanwhile
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
        raise failure or SourceError(f"{self.name}: its files change faster than they can be read")

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
        """Open as a secondary, and verify that it is not behind a strict read-only opening.

        A secondary that finds a damaged table silently falls back to an older state.
        """
        self._open(Options(raw_mode=True), AccessType.read_only(error_if_log_file_exist=False))
        newest = self._opened().latest_sequence_number()
        self._opened().close()
        secondary = str(self._private_folder() / "secondary")
        options = Options(raw_mode=True)
        options.set_max_file_opening_threads(1)  # each catch-up starts them all, needlessly
        self._open(options, AccessType.secondary(secondary))
        found = self._opened().latest_sequence_number()
        if found < newest:
            raise SourceError(f"{self.name}: its files are damaged: write {found} of {newest}")
