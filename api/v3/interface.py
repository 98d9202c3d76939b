"""What codes can do: the ids of their get-methods, and names of what that makes of a contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ingest.contract.interface import load_interfaces

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from queries.reader import Reader

KEPT_CODES = 8192
"""Codes whose facts are kept; the same few codes are behind almost all accounts."""


class CodeFacts(NamedTuple):
    """What a code can do.

    ``methods`` are the ids of its get-methods, None where it has no table of them that can be
    read; ``names`` are interfaces, None where none fits.
    """

    methods: list[int] | None
    names: list[str] | None


NO_CODE = CodeFacts(None, None)

_KEPT: dict[tuple[Path, bytes], CodeFacts] = {}
"""Facts by lake and code hash. They follow from the code alone, so they hold in all snapshots."""


def read_codes(reader: Reader, code_hashes: Iterable[bytes | None]) -> dict[bytes, CodeFacts]:
    """Return the facts about codes by hash.

    A code that the lake did not look into is told by its hash alone, or has no names at all: [].
    """
    wanted = {code_hash for code_hash in code_hashes if code_hash is not None}
    lake_dir = reader.snapshot.lake_dir
    found = {item: _KEPT[lake_dir, item] for item in wanted if (lake_dir, item) in _KEPT}
    missing = sorted(wanted - found.keys())
    if missing and reader.snapshot.files["interfaces"]:
        rows = reader.rows("v3/codes", hashes=missing)
        read = {row["code_hash"]: CodeFacts(row["methods"], row["names"]) for row in rows}
        found |= read
        if len(_KEPT) > KEPT_CODES:
            _KEPT.clear()
        _KEPT.update({(lake_dir, code_hash): facts for code_hash, facts in read.items()})
    return {code_hash: found.get(code_hash) or _guess(code_hash) for code_hash in wanted}


def _guess(code_hash: bytes) -> CodeFacts:
    name = load_interfaces().by_code.get(code_hash)
    return CodeFacts(None, [] if name is None else [name])
