"""Random cells by every layout: no crash, JSON or a reason, and valid columns."""

import json
from random import Random

import pyarrow as pa

from tests.damage import throw
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.body import decode_message_body
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.record import OPCODE_BITS
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.lake.duck.body_table import BodyLayout

OWN = """
    list$_ value:uint8 next:(Maybe ^List) = List;
    tree#00000001 left:(Maybe ^Tree) right:(Either Cell ^Tree) = Tree;
    first#f0000001 flags:(## 8) more:flags.3?^List dict:(HashmapE 16 ^List) = Body;
    second#f0000002 big:int257 bits:bits1023 = Body;
    third#f0000003 name:^SnakeText body:^[ x:Coins y:MsgAddress ] all:Any = Body;
    fourth#f0000004 n:(## 4) x:(bits n) y:n?^(Hashmap n Bool) z:(HashmapAugE 8 uint4 uint2) = Body;
    fifth#f0000005 x:(PfxHashmapE 8 Bit) {n:#} y:(Unary ~n) z:(n * Bit) tree:^(BinTree Bit) = Body;
"""
BATCH = 4


def list_layouts() -> list[BodyLayout]:
    """Return every shipped layout, and custom ones with every kind of type."""
    shipped = load_scheme().layouts.values()
    names = {name for each in shipped for one in each for name in one.name.split(",") if name}
    return [layout for table in read_tables([OWN, *sorted(names)]) for layout in table.layouts]


def build(opcode: int, dice: Random) -> bytes:
    """Return a bag of up to 40 cells of random bits and references, beginning with an opcode."""
    tree = CellBuilder().tree
    cells: list[int] = []
    for left in range(dice.randrange(40), -1, -1):
        builder = CellBuilder(tree)
        if not left:
            builder.store_uint(0, dice.choice((0, 0, 512))).store_uint(opcode, OPCODE_BITS)
        bits = dice.choice((0, 8, 64, 267, 470 if not left else 1023))
        builder.store_uint(dice.getrandbits(bits) if bits else 0, bits)
        for _ in range(dice.randrange(5) if cells else 0):
            builder.store_ref(dice.choice(cells[-6:]))
        cells.append(builder.end())
    return serialize_boc(tree, [cells[-1]])


def damage(body: bytes, dice: Random) -> bytes:
    """Change up to three bytes, or cut off the end."""
    data = bytearray(body)
    for _ in range(dice.randrange(4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data) + 1)] if not dice.randrange(20) else data)


def test_damaged_bodies() -> None:
    layouts, fitting = list_layouts(), 0
    for dice in throw(50, 1):
        layout = dice.choice(layouts)
        drawn = [damage(build(layout.opcode, dice), dice) for _ in range(BATCH)]
        for body in drawn:
            decoded = decode_message_body(body, external_in=dice.random() < 1 / 2)
            assert decoded.json is None or "@type" in json.loads(decoded.json)
        bodies = pa.array(drawn)
        fits = layout.fit(bodies)
        fitting += fits.true_count
        for field in layout.fields:
            values = field.decode(bodies)
            values.validate(full=True)
            shown = zip(fits.to_pylist(), values.to_pylist(), strict=True)
            assert all(fit or value is None for fit, value in shown), field.name
    assert fitting
