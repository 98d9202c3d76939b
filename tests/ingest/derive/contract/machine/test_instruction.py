"""Every instruction of the machine does what the TVM does, on values of all types."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.machine import run
from tonlake.ingest.derive.contract.machine.code import Code
from tonlake.ingest.derive.contract.machine.run import Program
from tonlake.ingest.derive.contract.machine.stack import Account, Declined, Thrown
from tonlake.ingest.derive.contract.question import make_key
from tonlake.ingest.derive.contract.stack import Address, Cell, from_tvm
from tonlake.ingest.derive.tvm.call import GetMethodCall, Outcome
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.stack import TvmSlice
from tonlake.ingest.errors import BocError
from tonlake.ingest.settings import TvmSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GAS = 1_000_000
ADDRESS = Address(0, bytes(range(32)))
TRIES, FEW_TRIES = 2_000, 200
FEW, MANY = 2, 30
KINDS = "inncsbktd0"
SHAPES = (
    *("i", "n", "nn", "nnn", "c", "s", "ss", "si", "sii", "k", "kk", "ik", "ikk", "nk", "t", "0"),
    *(
        "b",
        "b",
        "tt",
        "c",
        "s",
        "nb",
        "bn",
        "cb",
        "bc",
        "sb",
        "bs",
        "bb",
        "nbi",
        "bii",
        "0b",
        "bi",
        "ici",
        "sci",
    ),
)
"""Types of values that instructions pop."""
Key = tuple[int, int]
NEWER: frozenset[Key] = frozenset(
    (16, opcode)
    for opcode in (
        *(0xCF50, 0xF916, 0xFA48, 0xFA49, *range(0xFA50, 0xFA56)),
        *(0xF82A, 0x6F81, 0x6F88, 0x6F8A, 0x6F8B, 0x6F8C, 0x6F8D),
    )
)
"""Instructions that this TVM does not know, MYCODE, for which it needs c7 of version 4, and those
that need tuples, which are not drawn: see ``test_newer.py``."""
KNOWN: list[Key] = sorted({*run._FIXED, *run._DECODERS} - NEWER)


@pytest.fixture(scope="module")
def pool(tvm: None) -> Iterator[TvmPool]:  # noqa: ARG001 - skips
    with closing(TvmPool(TvmSettings(wall_ms=60_000))) as made:
        yield made


def store_bits(node: CellBuilder, _cell: int) -> object:
    """Store the code of one instruction, INC."""
    return node.store_uint(0xA4, 8)


class Writer:
    """Writes programs: instructions that push values, then the one to test."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same programs every time
        self.tree = CellTree()
        self.code = CellBuilder(self.tree)
        self.count, self.pairs = 2, False

    def integer(self) -> int:
        small, large = self.random.randint(-3, 12), self.random.getrandbits(256)
        signed = self.random.choice((1, -1))
        picked = self.random.choice((small, small, small, 8, 19, 256, 255, large))
        return signed * picked >> self.random.choice((0, 0, 0, 1, 128, 250))

    def _push_integer(self) -> None:
        self.code.store_uint(0x82, 8).store_uint(30, 5).store_int(self.integer(), 259)

    def cell(self, depth: int = 0) -> int:
        builder = CellBuilder(self.tree)
        kind = self.random.randrange(5)
        bits = self.random.choice((0, 1, 7, 8, 64, 256, 267, 300, 500))
        value = self.random.getrandbits(bits) if bits else 0
        if kind == 0:  # an address
            builder.store_uint(self.random.choice((0, 0b100, 0b100, 0b110, 0b01)), 3)
            value, bits = self.random.getrandbits(264), 264
        elif kind == 1:  # an amount
            builder.store_coins(self.random.getrandbits(40))
        builder.store_uint(value, bits)
        if depth < 2:
            for _ in range(self.random.choice((0, 0, 1, 2, 4))):
                builder.store_ref(self.cell(depth + 1))
        return builder.end()

    def _push_cell(self) -> None:
        self.code.store_uint(0x88, 8).store_ref(self.cell())

    def _push_slice(self) -> None:
        self.code.store_uint(0x89, 8).store_ref(self.cell())
        if self.random.randrange(2):  # SDSKIPFIRST of some bits
            self._small()
            self.code.store_uint(0xD721, 16)

    def _small(self) -> None:
        self.code.store_uint(0x70 | self.random.choice((0, 1, 2, 3, 8)), 8)

    def _push_builder(self) -> None:
        self.code.store_uint(0xC8, 8)
        if self.random.randrange(2):  # SWAP ... STSLICER of a slice
            self.code.store_uint(0x89, 8).store_ref(self.cell()).store_uint(0xCF16, 16)

    def _push_continuation(self) -> None:
        bodies = ("", "A4", "A4A4A4", "A5", "20", "30", "70", "7F", "71DC75", "DB30", "6D", "C8C9")
        body = bytes.fromhex(self.random.choice(bodies))
        self.code.store_uint(0x90 | len(body), 8).store_bytes(body)

    def _push_tuple(self) -> None:
        """Push a tuple of integers, or of pairs of them."""
        for _ in range(self.count):
            self._small()
            if self.pairs:
                self._small()
                self.code.store_uint(0x6F02, 16)
        self.code.store_uint(0x6F00 | self.count, 16)

    def _push_look_up(self) -> None:
        """Push a key, a dictionary of some keys below 8, and their number of bits."""
        bits, key = self.random.choice((8, 19)), self.random.randrange(8)
        keys = {self.random.randrange(8) for _ in range(6)}
        entries = [(key, self._part()) for key in sorted(keys)]
        store = self.random.choice((CellBuilder.store_ref, store_bits))
        root = build_hashmap(self.tree, entries, bits, store=store)
        if self.random.randrange(2):
            self.code.store_uint(0x70 | key, 8)
        else:
            cell = CellBuilder(self.tree).store_uint(key, bits).store_uint(5, 3).end()
            self.code.store_uint(0x89, 8).store_ref(cell)
        self.code.store_uint(0x88, 8).store_ref(root).store_uint(0x80, 8).store_uint(bits, 8)

    def push(self, kind: str) -> None:
        """Push a value of a type in ``KINDS``."""
        pushes: dict[str, Callable[[], object]] = {
            "i": self._small,
            "n": self._push_integer,
            "c": self._push_cell,
            "s": self._push_slice,
            "b": self._push_builder,
            "k": self._push_continuation,
            "t": self._push_tuple,
            "d": self._push_look_up,
            "0": lambda: self.code.store_uint(0x6D, 8),
        }
        pushes[kind]()

    def _choose(self, key: Key) -> str:
        """Return the types of the values to push: many for instructions that move values."""
        if self.random.randrange(4):
            count = 16 if key[1] >> max(0, key[0] - 8) < 0x70 else 0
            return "".join(self.random.choices("in", k=count)) + self.random.choice(SHAPES)
        return "".join(self.random.choices(KINDS, k=self.random.choice((1, 2, 3, 4, 6, 17))))

    def write(self, key: Key) -> Cell | None:
        """Write a program for an instruction with any operands, and return its cell.

        Each value is pushed by a separate cell, which continues with the next one. None if the
        operands are invalid.
        """
        self.count = min(15, (key[1] & 15) + self.random.randrange(2))
        if key == (12, 0x6FB):
            self.count, self.pairs = 2, True
        pieces = []
        for kind in self._choose(key):
            self.code = CellBuilder(self.tree)
            self.push(kind)
            pieces.append(self.code)
        end = self._choose_end(key)
        pieces += [CellBuilder(self.tree).store_bytes(bytes.fromhex(end))] if end else []
        cell = self._instruction(key)
        if cell is None or len(cell[2]) == 4:
            return None
        bits, value, refs = cell
        pieces.insert(len(pieces) - bool(end), last := CellBuilder(self.tree))
        last.store_uint(value, bits)
        for ref in refs:
            last.store_ref(ref)
        root = CellBuilder(self.tree).end()
        for piece in reversed(pieces):
            root = piece.store_ref(root).end()
        return Cell(self.tree, root)

    def _choose_end(self, key: Key) -> str:
        """Return an instruction that unpacks the result of the tested one."""
        bits, opcode = key
        first = opcode >> bits - 8 if bits > 8 else opcode
        if first == 0xF4 and opcode != 0xF400:
            return self.random.choice(("", "D8"))
        if first == 0x6F:
            return self.random.choice((f"6F2{opcode & 15:X}", "", ""))
        if opcode in (0xC9, 0xCF31, 0xCF32):
            return ""
        if first in range(0xC8, 0xD0) or opcode in (0xF400, 0xFA02):
            return "C9"
        if first in range(0x8A, 0xA0):
            return self.random.choice(("", "D8"))
        return self.random.choice(("", "", "", "C9", "D8", "6F22"))

    def _instruction(self, key: Key) -> tuple[int, int, list[int]] | None:
        """Return bits and references of an instruction, as many as are decoded."""
        bits, opcode = key
        drawn = self.random.getrandbits(300)
        operands = self.random.choice((0, 1 << 292, drawn, drawn))
        builder = CellBuilder(self.tree).store_uint(opcode, bits).store_uint(operands, 300)
        refs = [self._part() for _ in range(4)]
        for ref in refs:
            builder.store_ref(ref)
        code = Code(self.tree.slice(builder.end()), run.decode)
        try:
            run._decode_one(code)
        except (Declined, BocError):
            return None
        used = bits + 300 - code.bits_left
        return used, (opcode << 300 | operands) >> code.bits_left, refs[: 4 - len(code.refs)]

    def _part(self) -> int:
        if self.random.randrange(2):
            return self.cell()
        return CellBuilder(self.tree).store_uint(self.random.choice((0x74, 0xA4, 0x20)), 8).end()


def ask_machine(code: Cell, arguments: tuple[Any, ...], data: Cell) -> list[Any] | str | None:
    """Return the stack, "thrown", or None if the machine leaves the run to the TVM."""
    try:
        return Program(code).run(Account(ADDRESS, data), arguments, GAS, {})
    except Declined:
        return None
    except Thrown:
        return "thrown"


def ask_tvm(pool: TvmPool, code: Cell, data: Cell) -> Outcome:
    bag = CellBuilder()
    bag.store_uint(0b100, 3).store_int(ADDRESS.workchain, 8).store_bytes(ADDRESS.account)
    me = TvmSlice(Cell(bag.tree, bag.end()).bag())
    info = (0x076EF1EA, 0, 0, 0, 0, 0, 0, (0, None), me)
    call = GetMethodCall(code.bag(), data.bag(), (), info, gas_limit=GAS)
    return pool.run_get_method(call)


@pytest.mark.parametrize("agreements", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("key", KNOWN, ids=lambda key: f"{key[1]:X}_{key[0]}")
def test_machine_and_tvm_agree_on_an_instruction(pool: TvmPool, key: Key, agreements: int) -> None:
    seen = Counter[str]()
    few = key in NEVER_END and agreements == FEW
    for number in range(FEW_TRIES if few else TRIES):
        writer = Writer(f"{key} {number}")
        code = writer.write(key)
        if code is None:
            continue
        data = Cell(writer.tree, writer.cell())
        found = ask_machine(code, (), data)
        if found is None:
            continue
        outcome = ask_tvm(pool, code, data)
        if found == "thrown":
            assert outcome.exit_code not in (0, 1), code.boc().hex()
        else:
            assert outcome.exit_code == 0, code.boc().hex()
            left = [from_tvm(value) for value in outcome.stack]
            assert make_key(found) == make_key(left), code.boc().hex()
        seen["thrown" if found == "thrown" else "left"] += 1
        if seen["left"] == agreements:
            break
    assert seen["left"] > 0 or key in NEVER_END, seen


NEVER_END = {
    *((10, 0b1111001000), (13, 0b1111001011000), (13, 0b1111001011001)),  # THROW, THROWARG
    *((8, 0xF0), (10, 0b1111000100), (10, 0b1111000101)),  # CALLDICT, JMPDICT: without end here
}
