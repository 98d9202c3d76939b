"""Decodes configuration parameters and the data of the elector and of staking pools."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.codec import Object, Work
from tonlake.ingest.derive.body.grammar import parse_scheme
from tonlake.ingest.derive.body.scheme import Scheme
from tonlake.ingest.errors import BocError, BodyError, BodyLimit

CURRENT, NEXT, PREVIOUS = 34, 36, 32
"""Parameters with the current, next and previous validator set."""

ELECTOR, TIMES, COUNTS, STAKES = 1, 15, 16, 17

NAMES = {
    -1000: "Code of the configuration contract",
    -999: "Key that may change parameters alone",
    -90: "No published form",
    -71: "Ethereum bridge, before parameter 71",
    0: "Configuration contract",
    1: "Elector contract",
    2: "Minter contract",
    3: "Fee collector",
    4: "DNS root",
    5: "Fee burning",
    6: "Extra currency prices",
    7: "Extra currencies to mint",
    8: "Version and capabilities",
    9: "Mandatory parameters",
    10: "Critical parameters",
    11: "Configuration voting",
    12: "Workchains",
    13: "Complaint fees",
    14: "Block rewards",
    15: "Election timing",
    16: "Validator counts",
    17: "Stakes",
    18: "Storage prices",
    19: "Network id",
    20: "Gas prices, masterchain",
    21: "Gas prices, basechain",
    22: "Block limits, masterchain",
    23: "Block limits, basechain",
    24: "Message prices, masterchain",
    25: "Message prices, basechain",
    28: "Catchain",
    29: "Consensus",
    30: "Simplex consensus",
    31: "Fundamental contracts",
    32: "Previous validators",
    33: "Previous temporary validators",
    34: "Current validators",
    35: "Current temporary validators",
    36: "Next validators",
    37: "Next temporary validators",
    40: "Validator fines",
    43: "Size limits",
    44: "Suspended accounts",
    45: "Precompiled contracts",
    71: "Ethereum bridge",
    72: "BNB Smart Chain bridge",
    73: "Polygon bridge",
    79: "Ethereum token bridge",
    80: "Token bridge",
    81: "BNB Smart Chain token bridge",
    82: "Polygon token bridge",
}
"""Titles of configuration parameters; others have none.

The configuration contract (``config-code.fc``) acts on -999 and -1000 besides storing them.
"""


def decode_param(number: int, boc: bytes) -> Object | None:
    """Decode the bag of a configuration parameter; None if its format is unknown."""
    sign = "Minus" if number < 0 else ""
    return decode_data(f"Param{sign}{abs(number)}", boc)


def decode_data(name: str, boc: bytes) -> Object | None:
    """Decode a bag of cells as the type ``name`` of ``config.tlb``; None if it does not fit."""
    try:
        tree = parse_boc(boc)
        source = tree.slice(tree.roots[0])
        text = _load_scheme().union(name).decode(source, Work(tree, {}))
    except (BocError, BodyError, BodyLimit):
        return None
    if source.bits_left or source.refs_left:
        return None
    return msgspec.json.decode(text, type=dict[str, Any])


@cache
def _load_scheme() -> Scheme:
    text = files("tonlake.api.chain").joinpath("config.tlb").read_text(encoding="utf-8")
    return Scheme(parse_scheme(text))
