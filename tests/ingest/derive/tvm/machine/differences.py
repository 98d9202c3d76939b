"""What other engines answer differently, by instruction, and why; all of it is their fault."""

import re
from collections.abc import Callable, Sequence

from tests.ingest.derive.tvm.machine.drawing import MOST, Drawer

_SIMPLEX_RULES = "the rules of version 13 as they were before the node released them"

TONPY = {
    r"DUEPAYMENT|PUSHCTR|INMSGPARAMS?|GETGLOBVAR|GETPARAM(LONG)?": (
        "c7 of a get-method is not that of the node"
    ),
    r"INMSG_\w+": "answers exit code 7, the node zeros, null and an empty address",
}
SANDBOX = {
    r"Q?LSHIFT(ADD)?(DIV|MOD|DIVMOD)[RC]?": f"{_SIMPLEX_RULES}: NaN or a shift out of range",
    r"QPOW2": f"{_SIMPLEX_RULES}: an exponent out of range",
    r"STOPTSTDADDRQ": "WebAssembly aborts on a value that is neither an address nor null",
}


def list_unexplained(
    known: dict[str, str],
    seeds: Sequence[int],
    version: int,
    list_different: Callable[[Sequence[bytes]], list[int]],
) -> list[tuple[int, str]]:
    """Return seeds of programs that end differently for no known reason, and where."""
    drawers = [Drawer(seed, version) for seed in seeds for _ in range(MOST)]
    codes = [drawer.draw(place % MOST + 1) for place, drawer in enumerate(drawers)]
    to_blame = {seed: ["the whole program"] for seed in seeds}
    for place in reversed(list_different(codes)):
        to_blame[seeds[place // MOST]] = [drawers[place].last, *drawers[place].pushed]
    return [
        (seed, names[0])
        for seed, names in to_blame.items()
        if not any(re.fullmatch(pattern, name) for pattern in known for name in names)
    ]
