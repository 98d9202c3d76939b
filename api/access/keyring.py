"""The keys of a running service: read again when their file changes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tonlake.api.access.key import find_record, read_keys
from tonlake.api.errors import KeyFileInvalid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tonlake.api.access.key import KeyRecord

LOG = logging.getLogger("tonlake.api")
LOOK_EVERY_S = 1.0
"""A key that was revoked is refused so much later at most."""

_Look = tuple[int, int, int] | None


class Keyring:
    """Finds the record of a key; used by one thread."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Read the keys; ``clock`` gives seconds.

        Raises:
            KeyFileInvalid: the file cannot be read.
        """
        self._path, self._clock = path, clock
        self._looked_s = clock()
        self._seen = self._look()
        self._records = self._read()

    def find(self, key: str) -> KeyRecord | None:
        """Return the record of a key, or None if it is not one of these."""
        if self._clock() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = self._clock()
            self._refresh()
        return find_record(self._records, key)

    def _refresh(self) -> None:
        """Read the file again if it changed; one that cannot be read leaves things as they are."""
        seen = self._look()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._records = self._read()
        except KeyFileInvalid as error:
            LOG.error("%s; the keys known before go on to hold", error)  # noqa: TRY400 - as one line

    def _read(self) -> dict[str, KeyRecord]:
        records = read_keys(self._path)
        if self._seen is None:
            LOG.warning("the file of keys %s is not there: no key is known until it is", self._path)
        return records

    def _look(self) -> _Look:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
