"""What codes can do: the ids of their get-methods, and names of what that makes of a contract."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

from api.wallet import WALLETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from queries.reader import Reader

_MORE_WALLETS = {
    "5M87L0xtamHqDytUR9JmeFsmrzY32y3u5rzRqoJvNBI=": "wallet_v5_beta",
    "2M27t58sXKpnesRQdwvgNRviHhJQSG3oXMUqoz3RZIQ=": "wallet_highload_v1r1",
    "Dc7tISadZgE+lbGfu1xVpvAa2tQIN7qo5SHN46AqpGw=": "wallet_highload_v1r2",
    "lJTRzI7fEvBWcaGpugmSEJbrUIEeGSTsZcPGKfu4CBI=": "wallet_highload_v2",
    "jOtFs81LXMYOquHBO5wJI5Jnf+U2sumy2AG2Lv+TH+E=": "wallet_highload_v2r1",
    "ID3U81ittJmTEpqpJcrDmRa2ig5PeNJujywraer6Vnk=": "wallet_highload_v2r2",
    "EayteVWEQJDyg78ji8FEmHH3g+fMCXlAjT9IWUg+hSU=": "wallet_highload_v3r1",
    "Reu86bXSNYhstr/hw62TtwjeBYJEiSNlye4N/kOct7U=": "wallet_preprocessed_v2",
    "tItTGr7DtxRjgpH3137W3J9qJynvyiBHcTc3TUrotZA=": "wallet_vesting",
}


def _name_wallet(kind: str) -> str:
    """Return ``wallet_v3r2`` for ``wallet v3 r2``; only ``beta`` keeps its gap."""
    return kind.replace(" r", "r").replace(" ", "_")


INTERFACES: Mapping[bytes, str] = {
    **{code_hash: _name_wallet(kind.name) for code_hash, kind in WALLETS.items()},
    **{base64.b64decode(text): name for text, name in _MORE_WALLETS.items()},
}
"""The one interface that a code hash stands for."""


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
    return CodeFacts(None, [INTERFACES[code_hash]] if code_hash in INTERFACES else [])
