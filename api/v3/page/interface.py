"""Facts about contract codes: ids of their get-methods, and names of their interfaces."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.derive.contract.record import load_interfaces

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tonlake.queries.reader import Reader

KEPT_CODES = 8192
"""How many codes are cached; almost all accounts share the same few codes."""


class CodeFacts(NamedTuple):
    """Facts about one code.

    ``methods`` are the ids of its get-methods, None if it has no readable method table; ``names``
    are its interfaces, None if none matches; ``listed`` are those in address books, [] for code
    without methods; ``written`` is ``listed`` as JSON.
    """

    methods: list[int] | None
    names: list[str] | None
    listed: list[str] | None
    written: bytes


def _make_facts(methods: list[int] | None, names: list[str] | None) -> CodeFacts:
    listed = names or [] if methods is None else names
    return CodeFacts(methods, names, listed, msgspec.json.encode(listed))


NO_CODE = CodeFacts(None, [], None, b"null")
"""For accounts without code: null in address books, as in TON Center."""

_KEPT: dict[Path, dict[bytes, CodeFacts]] = {}
"""Facts by lake and code hash; they depend only on the code, so all snapshots share them."""


def read_codes(reader: Reader, code_hashes: Iterable[bytes | None]) -> dict[bytes, CodeFacts]:
    """Return the facts about codes by hash.

    A code unknown to contract detection has the interface that its hash is known for, or none: [].
    """
    requested = {code_hash for code_hash in code_hashes if code_hash is not None}
    if not reader.snapshot.files["interfaces"]:
        return {code_hash: _guess(code_hash) for code_hash in requested}
    kept = _KEPT.setdefault(reader.snapshot.lake_dir, {})
    found = {code_hash: facts for code_hash in requested if (facts := kept.get(code_hash))}
    missing = sorted(requested - found.keys())
    if not missing:
        return found
    rows = reader.rows("v3/codes", hashes=missing)
    read = {row["code_hash"]: _make_facts(row["methods"], row["names"]) for row in rows}
    found |= read
    if len(kept) > KEPT_CODES:
        kept.clear()
    kept.update(read)
    return {code_hash: found.get(code_hash) or _guess(code_hash) for code_hash in requested}


@lru_cache(KEPT_CODES)
def _guess(code_hash: bytes) -> CodeFacts:
    name = load_interfaces().by_code.get(code_hash)
    return _make_facts(None, [] if name is None else [name])
