"""Types of actions by the version of clients that know them, and the names of groups.

Source: the versions ``v1`` to ``v5`` of TON Center's API v3, and the names that its parameter
``supported_action_types`` accepts; ``action_types.txt`` lists both.
"""

from functools import lru_cache
from importlib.resources import files


def _read_names() -> dict[str, tuple[str, ...]]:
    text = files("tonlake.lake.schema").joinpath("action_types.txt").read_text(encoding="utf-8")
    lines = text.replace("\n    ", " ").splitlines()
    named = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: tuple(types.split(", ")) for name, _, types in named}


NAMES = _read_names()
"""Names of groups, each with its types and other groups."""

V1_BLOCKS = frozenset((*NAMES["v1"], *NAMES.pop("blocks of v1")))
"""Types of blocks whose actions hide their parts."""

_GROUPED = {name for names in NAMES.values() for name in names} - NAMES.keys()
CURRENCY_TRANSFER = "extra_currency_transfer"
ACTION_TYPES = tuple(sorted(_GROUPED | {CURRENCY_TRANSFER}))

SALES = tuple(sorted({*NAMES["nft.v3"], "auction_bid"} - {"nft"}))
"""Types of actions that are events of a sale or an auction of an NFT."""


@lru_cache(256)
def expand_names(names: tuple[str, ...]) -> frozenset[str]:
    """Return the types in the named groups, names that are types, and those of v1.

    A client that knows transfers also knows those of extra currencies.
    """
    types: set[str] = set()
    seen: set[str] = set()
    todo = ["v1", CURRENCY_TRANSFER, *names]
    while todo:
        name = todo.pop()
        if name not in NAMES:
            types.add(name)
        elif name not in seen:
            seen.add(name)
            todo += NAMES[name]
    return frozenset(types)
