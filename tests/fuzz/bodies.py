"""Fuzzes the columns of layouts with damaged bodies: the codecs' values or NULL, and no crash.

``make fuzz`` runs this with the extension built with AddressSanitizer and
UndefinedBehaviorSanitizer: any finding ends the process.
"""

from __future__ import annotations

import argparse
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.native import NATIVE
from tonlake.ingest.derive.body.scheme import OPCODE_BITS, load_scheme

if TYPE_CHECKING:
    from tonlake.lake.duck.body_table import BodyLayout

OWN = """
    list$_ value:uint8 next:(Maybe ^List) = List;
    tree#00000001 left:(Maybe ^Tree) right:(Either Cell ^Tree) = Tree;
    first#f0000001 flags:(## 8) more:flags.3?^List dict:(HashmapE 16 ^List) = Body;
    second#f0000002 big:int257 bits:bits1023 = Body;
    third#f0000003 name:^SnakeText body:^[ x:Coins y:MsgAddress ] all:Any = Body;
"""
BATCH = 200


def list_layouts() -> list[BodyLayout]:
    """Return every shipped layout, and custom ones with every kind of type."""
    shipped = load_scheme().layouts.values()
    names = sorted({name for each in shipped for one in each for name in one.name.split(",")})
    return [layout for table in read_tables([OWN, *names]) for layout in table.layouts]


def build(opcode: int, choices: Random) -> bytes:
    """Return a bag of up to 40 cells of random bits and references, beginning with an opcode."""
    tree = CellBuilder().tree
    cells: list[int] = []
    for left in range(choices.randrange(40), -1, -1):
        builder = CellBuilder(tree)
        if not left:
            builder.store_uint(opcode, OPCODE_BITS)
        bits = choices.choice((0, 8, 64, 267, 600, 991 if not left else 1023))
        builder.store_uint(choices.getrandbits(bits) if bits else 0, bits)
        for _ in range(choices.randrange(5) if cells else 0):
            builder.store_ref(choices.choice(cells[-6:]))
        cells.append(builder.end())
    return serialize_boc(tree, [cells[-1]])


def damage(body: bytes, choices: Random) -> bytes:
    """Change up to three bytes, or cut off the end."""
    data = bytearray(body)
    for _ in range(choices.randrange(4)):
        data[choices.randrange(len(data))] = choices.randrange(256)
    return bytes(data[: choices.randrange(len(data) + 1)] if not choices.randrange(20) else data)


def run(cases: int, seed: int) -> int:
    """Decode bodies by random layouts; return how many match."""
    choices, layouts, fitting = Random(seed), list_layouts(), 0  # noqa: S311 - not for secrets
    for _ in range(0, cases, BATCH):
        layout = choices.choice(layouts)
        bodies = pa.array([damage(build(layout.opcode, choices), choices) for _ in range(BATCH)])
        fits = layout.fit(bodies)
        fitting += fits.true_count
        for field in layout.fields:
            values = field.decode(bodies)
            values.validate(full=True)
            shown = zip(fits.to_pylist(), values.to_pylist(), strict=True)
            assert all(fit or value is None for fit, value in shown), field.name
    return fitting


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if NATIVE is None:
        raise SystemExit("the extension is not built")
    fitting = run(options.cases, options.seed)
    print(f"{fitting:,} of {options.cases:,} bodies fit, by {NATIVE.__file__}")  # noqa: T201


if __name__ == "__main__":
    main()
