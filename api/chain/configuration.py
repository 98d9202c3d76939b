"""Decodes configuration parameters and the data of the elector and of staking pools."""

from __future__ import annotations

import re
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

_TITLE = re.compile(r"^// Param(Minus)?(\d+): (.+)$", re.MULTILINE)


def _read_scheme() -> str:
    return files("tonlake.api.chain").joinpath("config.tlb").read_text(encoding="utf-8")


NAMES = {
    int(number) * (-1 if sign else 1): title
    for sign, number, title in _TITLE.findall(_read_scheme())
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
    return Scheme(parse_scheme(_read_scheme()))
