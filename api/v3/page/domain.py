"""Domains that accounts are known by: those they own, and that point back to them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tonlake.queries.reader import Reader

Domains = dict[tuple[int, bytes], str]
"""The shortest domain of each workchain and account id that has one."""

KEPT = 2


def find_domains(reader: Reader) -> Domains:
    """Return the domains of a snapshot.

    They are few beside the accounts, and change seldom: they are read when a commit changed them.
    """
    files = reader.snapshot.files["dns_records"]
    if not files:
        return {}
    key = (str(reader.snapshot.lake_dir), *(file.path for file in files))
    with _LOCK:
        found = _KEPT.get(key)
    if found is None:
        rows = reader.rows("v3/domains")
        found = {(row["workchain"], row["account"]): row["domain"] for row in rows}
        with _LOCK:
            while len(_KEPT) >= KEPT:
                _KEPT.pop(next(iter(_KEPT)))
            _KEPT[key] = found
    return found


_LOCK = threading.Lock()
_KEPT: dict[tuple[str, ...], Domains] = {}
