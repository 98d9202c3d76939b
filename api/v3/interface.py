"""Names of what a contract can do, by code hash; those that need its methods come from a TVM."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from api.wallet import WALLETS

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def name_interfaces(code_hash: bytes | None) -> list[str] | None:
    """Return the interfaces of a known account; None where it has no code, [] where unknown."""
    if code_hash is None:
        return None
    return [INTERFACES[code_hash]] if code_hash in INTERFACES else []
