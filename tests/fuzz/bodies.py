"""Fuzzes the decoder of bodies: no crash, JSON or a reason, and bounded time.

Random cells follow every opcode of the table; large bodies of the shapes that take most work are
timed at half of their size and in full, which shows quadratic time.
"""

import argparse
import json
from functools import partial
from random import Random
from time import process_time
from timeit import repeat

import pyarrow as pa

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
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
BATCH = 200
LARGE = 64 << 10
"""Bytes of a large body."""


def list_layouts() -> list[BodyLayout]:
    """Return every shipped layout, and custom ones with every kind of type."""
    shipped = load_scheme().layouts.values()
    names = {name for each in shipped for one in each for name in one.name.split(",") if name}
    return [layout for table in read_tables([OWN, *sorted(names)]) for layout in table.layouts]


def build(opcode: int, choices: Random) -> bytes:
    """Return a bag of up to 40 cells of random bits and references, beginning with an opcode."""
    tree = CellBuilder().tree
    cells: list[int] = []
    for left in range(choices.randrange(40), -1, -1):
        builder = CellBuilder(tree)
        if not left:
            builder.store_uint(0, choices.choice((0, 0, 512))).store_uint(opcode, OPCODE_BITS)
        bits = choices.choice((0, 8, 64, 267, 470 if not left else 1023))
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
        drawn = [damage(build(layout.opcode, choices), choices) for _ in range(BATCH)]
        for body in drawn:
            decoded = decode_message_body(body, external_in=choices.random() < 1 / 2)
            assert decoded.json is None or "@type" in json.loads(decoded.json)
        bodies = pa.array(drawn)
        fits = layout.fit(bodies)
        fitting += fits.true_count
        for field in layout.fields:
            values = field.decode(bodies)
            values.validate(full=True)
            shown = zip(fits.to_pylist(), values.to_pylist(), strict=True)
            assert all(fit or value is None for fit, value in shown), field.name
    return fitting


def build_message(tree: CellTree, number: int) -> int:
    """Return a message that deploys a contract and sends it jettons, with two comments."""
    code = CellBuilder(tree).store_uint(number, 300).end()
    data = CellBuilder(tree).store_ref(code).store_ref(code).end()
    init = CellBuilder(tree).store_uint(0b00110, 5).store_ref(code).store_ref(data).end()
    notes = [b"%d" % (number + place) for place in (0, LARGE)]
    first, second = (CellBuilder(tree).store_uint(0, 32).store_bytes(note).end() for note in notes)
    body = CellBuilder(tree).store_uint(0x0F8A7EA5, 32).store_uint(number, 64).store_coins(10**9)
    body.store_uint(0b100, 3).store_uint(number, 264).store_uint(0, 2).store_maybe_ref(first)
    body.store_coins(0).store_maybe_ref(second)
    message = CellBuilder(tree).store_uint(0x10, 6).store_uint(0b100, 3).store_uint(number, 264)
    message.store_coins(10**9).store_uint(0, 105).store_uint(0b11, 2).store_ref(init)
    return message.store_bit(1).store_ref(body.end()).end()


def build_actions(size: int) -> bytes:
    """Return a request to a wallet v5, with as many messages as fit into ``size`` bytes."""
    tree = CellBuilder().tree
    out = CellBuilder(tree).end()
    for number in range(min(255, size // 230)):
        node = CellBuilder(tree).store_ref(out).store_uint(0x0EC3C86D, 32).store_uint(3, 8)
        out = node.store_ref(build_message(tree, number)).end()
    body = CellBuilder(tree).store_uint(0x6578746E, 32).store_uint(1, 64)
    return serialize_boc(tree, [body.store_maybe_ref(out).store_bit(0).end()])


def build_nested(size: int) -> bytes:
    """Return requests to wallets v5, each in one of the three messages of another."""
    tree = CellBuilder().tree
    count = size // 152
    bodies = [CellBuilder(tree).end()] * (3 * count + 1)
    for number in reversed(range(count)):
        out = bodies[-1]
        for body in bodies[3 * number + 1 : 3 * number + 4]:
            sent = CellBuilder(tree).store_uint(0x10, 6).store_uint(0, 2).store_coins(number)
            sent.store_uint(0, 106).store_bit(1).store_ref(body)
            node = CellBuilder(tree).store_ref(out).store_uint(0x0EC3C86D, 32).store_uint(3, 8)
            out = node.store_ref(sent.end()).end()
        request = CellBuilder(tree).store_uint(0x6578746E, 32).store_uint(number, 64)
        bodies[number] = request.store_maybe_ref(out).store_bit(0).end()
    return serialize_boc(tree, [bodies[0]])


def build_batch(size: int) -> bytes:
    """Return a request to a highload wallet v2: a dictionary of messages."""
    tree = CellBuilder().tree
    messages = [(number, build_message(tree, number)) for number in range(min(255, size // 230))]
    root = build_hashmap(
        tree, messages, 16, lambda node, sent: node.store_uint(3, 8).store_ref(sent)
    )
    body = CellBuilder(tree).store_uint(0, 512).store_uint(1, 32).store_uint(1 << 62, 64)
    return serialize_boc(tree, [body.store_maybe_ref(root).end()])


def build_shared(size: int) -> bytes:
    """Return a dictionary of 2^16 keys in 16 cells, which all share one large code cell."""
    tree = CellBuilder().tree
    code = CellBuilder(tree).end()
    for number in range(size // 130):
        code = CellBuilder(tree).store_bytes(b"%0120d" % number).store_ref(code).end()
    message = CellBuilder(tree).store_uint(0x10, 6).store_uint(0, 2).store_coins(0)
    message.store_uint(0, 105).store_uint(0b10, 2).store_uint(0b00100, 5)
    sent = message.store_ref(code).store_bit(0).end()
    edge = CellBuilder(tree).store_uint(0, 2).store_uint(3, 8).store_ref(sent).end()
    for _ in range(16):
        edge = CellBuilder(tree).store_uint(0, 2).store_ref(edge).store_ref(edge).end()
    body = CellBuilder(tree).store_uint(0, 512).store_uint(1, 32).store_uint(1, 64)
    return serialize_boc(tree, [body.store_maybe_ref(edge).end()])


SHAPES = (build_actions, build_batch, build_nested, build_shared)


def time_large(size: int) -> dict[str, float]:
    """Return the CPU time of decoding each shape with ``size`` bytes, in milliseconds."""
    found = {}
    for shape in SHAPES:
        work = partial(decode_message_body, shape(size), external_in=True)
        found[shape.__name__] = min(repeat(work, number=1, repeat=20, timer=process_time)) * 1000
    return found


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fitting = run(options.cases, options.seed)
    print(f"{fitting:,} of {options.cases:,} bodies fit")  # noqa: T201
    half, full = time_large(LARGE // 2), time_large(LARGE)
    for shape, took in full.items():
        print(f"{shape}: {took:.1f} ms for {LARGE:,} bytes, {half[shape]:.1f} for half")  # noqa: T201


if __name__ == "__main__":
    main()
