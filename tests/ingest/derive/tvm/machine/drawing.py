"""Draws programs: values are pushed, fitting ones and others, then instructions use them."""

import re
from collections.abc import Sequence
from functools import cache
from random import Random

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.machine.code import Instruction, load_instructions

_LEFT_OUT = ("DUMP", "DEBUG", "STRDUMP", "SETCP")
"""Debugging, and other codepages."""

MOST = 4
"""Instructions of a program, besides those that push values."""

_SHORT = {"tiny": 4, "most": 4, "words": 3}
_INLINE = ("code", "slice", "text", "long")
_NEW_BUILDER, _SWAP, _STORE_SLICE, _NULL, _NAN = "11001000", "00000001", "11001110", "01101101", (
    "1000001111111111"
)  # fmt: skip
_PUSH_REF, _PUSH_REF_SLICE, _MAKE_TUPLE, _PUSH_CODE = "10001000", "10001001", "011011110000", "1001"
_MAX_BITS, _MAX_REFS = 1000, 3


@cache
def list_drawn(most_version: int) -> list[Instruction]:
    """Return the instructions that are drawn for a global version."""
    return [
        row
        for row in load_instructions()[1]
        if not row.name.startswith(_LEFT_OUT) and row.since <= most_version
    ]


def push_int(value: int) -> str:
    """Return PUSHINT as bits."""
    if -128 <= value < 128:
        return f"10000000{value & 255:08b}"
    size = 0
    while not -(1 << 8 * size + 18) <= value < 1 << 8 * size + 18:
        size += 1
    return f"10000010{size:05b}{value & (1 << 8 * size + 19) - 1:0{8 * size + 19}b}"


class Drawer:
    """A program in progress: blocks of code, each of which continues in the next one's cell."""

    def __init__(self, seed: int, version: int) -> None:
        """Start the program of a seed, of instructions up to a global version."""
        self.random = Random(seed)  # noqa: S311 - repeatable, not secret
        self.tree = CellTree()
        self.rows = list_drawn(version)
        self.blocks: list[tuple[str, list[int]]] = []
        self.bits, self.refs = "", list[int]()
        self.last = ""
        """The last instruction that was drawn."""
        self.pushed: list[str] = []
        """The instructions of pushed code, which others may run."""

    def cell(self, bits: str, refs: Sequence[int] = ()) -> int:
        builder = CellBuilder(self.tree)
        if bits:
            builder.store_uint(int(bits, 2), len(bits))
        for ref in refs:
            builder.store_ref(ref)
        return builder.end()

    def draw_bits(self, count: int) -> str:
        return f"{self.random.getrandbits(count):0{count}b}" if count else ""

    def draw_cell(self, depth: int = 0) -> int:
        draw = self.random
        count = draw.choice([0, 0, 1, 2, 4]) if depth < 2 else 0
        refs = [self.draw_cell(depth + 1) for _ in range(count)]
        return self.cell(self.draw_bits(draw.choice([0, 1, 8, 32, 256, 267, 400])), refs)

    def draw_map(self, bits: int) -> int:
        keys = sorted({self.random.getrandbits(bits) for _ in range(self.random.randint(1, 6))})
        of_refs = self.random.random() < 0.4

        def store(node: CellBuilder, _value: int) -> None:
            if of_refs:
                node.store_ref(self.draw_cell(2))
                return
            value = self.draw_bits(self.random.randint(1, 40))
            node.store_uint(int(value, 2), len(value))

        return build_hashmap(self.tree, [(key, 0) for key in keys], bits, store)

    def draw_int(self) -> int:
        draw = self.random
        kind = draw.random()
        if kind < 0.4:
            return draw.randint(-3, 20)
        if kind < 0.6:
            return draw.randint(-300, 1100)
        value = draw.choice([1, -1]) * (1 << draw.randint(0, 256)) + draw.randint(-1, 1)
        return max(min(value, 2**256 - 1), -(2**256))

    def add(self, bits: str, refs: Sequence[int] = ()) -> None:
        if len(self.bits) + len(bits) > _MAX_BITS or len(self.refs) + len(refs) > _MAX_REFS:
            self.blocks.append((self.bits, self.refs))
            self.bits, self.refs = "", []
        self.bits += bits
        self.refs += refs

    def push(self) -> None:
        """Add code that pushes a value of some kind."""
        kind = self.random.randrange(20)
        if kind < 9:
            self.add(push_int(self.draw_int()))
        elif kind < 14:
            code = self.random.choice([_PUSH_REF, _PUSH_REF_SLICE])
            self.add(code, [self.draw_cell()])
        elif kind == 14:
            bits = self.random.choice([8, 16, 32, 64, 256])
            self.add(_PUSH_REF, [self.draw_map(bits)])
            self.add(push_int(bits))
        elif kind == 15:
            self.add(_NEW_BUILDER + _PUSH_REF_SLICE, [self.draw_cell()])
            self.add(_SWAP + _STORE_SLICE)
        elif kind == 16:
            inner = ""
            for _ in range(2):
                inner += self.draw_instruction(plain=True)[0]
                self.pushed.append(self.last)
            inner = inner[:120][: len(inner) // 8 * 8]
            self.add(f"{_PUSH_CODE}{len(inner) // 8:04b}{inner}")
        elif kind == 17:
            self.add(_MAKE_TUPLE + f"{self.random.randint(0, 3):04b}")
        else:
            self.add(self.random.choice([_NULL, _NAN, _NEW_BUILDER]))

    def draw_instruction(self, *, plain: bool = False) -> tuple[str, list[int]]:
        """Return an instruction with its references; ``plain`` ones have none."""
        while True:
            row = self.random.choice(self.rows)
            self.last = row.name
            if any(form.startswith(_INLINE) for form in row.operands):
                continue
            found = [self._draw_operand(form) for form in row.operands]
            refs = [ref for _, ref in found if ref is not None]
            if plain and refs:
                continue
            bits = f"{self.random.randint(row.first, row.last):024b}"
            size = row.opcode_bits + sum(size for size, _ in found)
            return (bits + self.draw_bits(16))[:size], refs

    def _draw_operand(self, form: str) -> tuple[int, int | None]:
        """Return the bits that an operand takes, and its reference."""
        if form in ("cell", "ref", "dict"):
            return 0, self.draw_map(8) if form == "dict" else self.draw_cell()
        if form.startswith("="):
            return 0, None
        return _SHORT.get(form) or int(re.findall("[0-9]+", form)[0]), None

    def draw(self, most: int = MOST) -> bytes:
        """Return the code of the program, or of its beginning up to an instruction."""
        for _ in range(min(self.random.randint(1, MOST), most)):
            for _ in range(self.random.randint(0, 5)):
                self.push()
            self.add(*self.draw_instruction())
        return self.finish()

    def finish(self) -> bytes:
        self.blocks.append((self.bits, self.refs))
        following: int | None = None
        for bits, refs in reversed(self.blocks):
            following = self.cell(bits, [*refs, *([] if following is None else [following])])
        return serialize_boc(self.tree, [following or 0])


def draw_program(seed: int, version: int = 11) -> bytes:
    """Return the code of a program, which depends on the seed alone."""
    return Drawer(seed, version).draw()
