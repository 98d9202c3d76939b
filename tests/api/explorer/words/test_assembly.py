"""Code as instructions: every form of operand, real contracts, the same as Fift, hostile code."""

import base64
import re
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.commands import run_program
from tonlake.api.explorer.words.assembly import MAX_CHARACTERS, disassemble, write_bits
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import LIBRARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.record import find_method_ids


def write_code(*parts: str, refs: tuple[str, ...] = ()) -> bytes:
    """Return a bag of cells: hex digits, or binary ones after 0b, and flat references."""
    builder = CellBuilder()
    for ref in refs:
        builder.store_ref(_store(CellBuilder(builder.tree), ref).end())
    for part in parts:
        _store(builder, part)
    root = builder.end()
    return serialize_boc(builder.tree, [root])


def _store(builder: CellBuilder, part: str) -> CellBuilder:
    if part.startswith("0b"):
        return builder.store_uint(int(part, 2), len(part) - 2)
    return builder.store_uint(int(part, 16), 4 * len(part)) if part else builder


@pytest.mark.parametrize(
    ("hexes", "text"),
    [
        ("A0", "ADD"),
        ("7A", "PUSHINT 10"),
        ("7F", "PUSHINT -1"),
        ("80FF", "PUSHINT -1"),
        ("82012345", "PUSHINT 74565"),
        ("03", "XCHG s0 s3"),
        ("1042", "XCHG s4 s2"),
        ("14", "XCHG s1 s4"),
        ("5210", "PUXC s1 s(-1)"),
        ("5524", "BLKSWAP 3 5"),
        ("ED44", "PUSHCTR c4"),
        ("D31F", "LDU 32"),
        ("D715", "PLDUZ 192"),
        ("F2C141", "THROW 321"),
        ("F2E141", "THROWIFNOT 321"),
        ("F82A", "MYCODE"),
        ("FF00", "SETCP 0"),
        ("FFF1", "SETCP -15"),
        ("FEF24142 43", "DEBUGSTR 'ABC'"),
        ("8B1128", "PUSHSLICE x{12}"),
        ("DB0A", "CALLXARGS 10 -1"),
        ("F4BC", "DICTIGETJMPZ"),
        ("92A0A1", "PUSHCONT {\n  ADD\n  SUB\n}"),
    ],
)
def test_an_instruction(hexes: str, text: str) -> None:
    assert disassemble(write_code(*hexes.split())) == text


def test_references_are_code_or_data() -> None:
    both = disassemble(write_code("E30F", refs=("A0", "A1")))
    assert both == "IFREFELSEREF {\n  ADD\n} {\n  SUB\n}"
    assert disassemble(write_code("88", refs=("ABC",))) == "PUSHREF x{ABC}"
    assert disassemble(write_code("A0", refs=("A1",))) == "ADD\nSUB"


def test_methods_are_named() -> None:
    tree = CellTree()
    entries = [(0, 0xA0), (85143, 0xA1), (0x7FFFF, 0xA2)]
    root = build_hashmap(tree, entries, 19, lambda builder, value: builder.store_uint(value, 8))
    builder = CellBuilder(tree).store_uint(0xFF00, 16).store_uint(0xF4A413, 24)
    code = serialize_boc(tree, [builder.store_ref(root).end()])
    assert disassemble(code, ["seqno"]).splitlines()[2:] == [
        "  recv_internal (0): {",
        "    ADD",
        "  }",
        "  seqno (85143): {",
        "    SUB",
        "  }",
        "  recv_external (-1): {",
        "    SUBR",
        "  }",
        "}",
    ]


def test_what_is_no_instruction_is_shown_as_it_is() -> None:
    text = disassemble(write_code("A0", "FFF", refs=("AB",)))
    assert text == "ADD\n… no instruction: x{FFF}\n  x{AB}"
    assert disassemble(write_code("A0", "0b1101")) == "ADD\n… no instruction: x{D}"
    assert disassemble(write_code("F4A413")) == "… no instruction: x{F4A413}"


@pytest.mark.parametrize(
    ("value", "bits", "text"),
    [(0, 0, "x{}"), (5, 3, "x{B_}"), (0, 1, "x{4_}"), (0xAB, 8, "x{AB}"), (1, 5, "x{0C_}")],
)
def test_bits_are_written_as_fift_does(value: int, bits: int, text: str) -> None:
    assert write_bits(value, bits) == text


@pytest.fixture(scope="module")
def codes(client: TestClient[Any]) -> list[bytes]:
    """Every code among the largest accounts and jettons, their wallets and NFTs of the demo."""
    top = client.get("/api/v3/topAccountsByBalance", params={"limit": 100}).json()
    addresses = [each["account"] for each in top]
    for path, key in (("jetton/wallets", "jetton_wallets"), ("nft/items", "nft_items")):
        addresses.append(client.get(f"/api/v3/{path}?limit=1").json()[key][0]["address"])
    params = {"address": addresses, "include_boc": "true"}
    states = client.get("/api/v3/accountStates", params=params).json()["accounts"]
    found = {state["code_hash"]: state["code_boc"] for state in states if "code_boc" in state}
    assert len(found) > 5
    return [base64.b64decode(code) for code in found.values()]


def test_code_of_real_contracts_is_known_throughout(codes: list[bytes]) -> None:
    for code in codes:
        text = disassemble(code)
        assert "…" not in text
        tree = parse_boc(code)
        listed = {int(each) for each in re.findall(r" \((-?[0-9]+)\): \{$", text, re.MULTILINE)}
        known = find_method_ids(tree, tree.roots[0]) or []
        assert listed == {each - (each >> 18 << 19) for each in known}


FIFT = """
import sys
from tonpy import Cell
from tonpy.fift.disasm import disassembler
for line in sys.stdin:
    print(disassembler(Cell(line.strip())))
    print("=")
"""
MNEMONIC = re.compile(r"[0-9]?[A-Z][A-Z0-9_]*")
SAME = {"PUSHCTR": "PUSH", "POPCTR": "POP", "IFJMPREF": "IFJMP", "CALLREF": "CALL"}
"""Names that Fift's disassembler gives to instructions; it also folds branches into IF and ELSE."""
BRANCHES = {"PUSHCONT", "CONT", "IF", "IFELSE", "IFREF", "IFREFELSE", "IFELSEREF", "IFREFELSEREF"}


def _count(text: str) -> Counter[str]:
    found = (MNEMONIC.match(line.strip(" <{}")) for line in text.splitlines())
    names = (SAME.get(match[0], match[0]) for match in found if match)
    return Counter(name for name in names if name not in BRANCHES)


def test_fift_finds_the_same_instructions(codes: list[bytes]) -> None:
    pytest.importorskip("tonpy")
    text = "\n".join(base64.b64encode(code).decode() for code in codes)
    done = run_program(sys.executable, "-c", FIFT, input=text, check=True)
    theirs = done.stdout.split("\n=\n")
    for code, other in zip(codes, theirs, strict=False):
        assert _count(disassemble(code)) == _count(other)


@pytest.mark.parametrize(
    ("library", "shown"),
    [(write_code("00"), "NOP"), (b"damaged", "… the library is not a bag of cells")],
)
def test_code_of_a_library(library: bytes, shown: str) -> None:
    builder = CellBuilder().store_uint(LIBRARY, 8).store_bytes(b"\x07" * 32)
    boc = serialize_boc(builder.tree, [builder.end(exotic=True)])
    _named, *lines = disassemble(boc, libraries={b"\x07" * 32: library}).split("\n")
    assert [line.strip() for line in lines] == [shown]


def test_endless_code_is_cut() -> None:
    tree = CellTree()
    cell = CellBuilder(tree).store_uint(0xA0, 8).end()
    for _ in range(60):
        branch = CellBuilder(tree).store_uint(0xE30F, 16)
        cell = branch.store_ref(cell).store_ref(cell).end()
    text = disassemble(serialize_boc(tree, [cell]))
    assert len(text) < MAX_CHARACTERS + 100
    assert text.endswith(f"… the listing ends after {MAX_CHARACTERS:,} characters")
    assert "… nested deeper" in text


@given(st.binary(max_size=120), st.binary(max_size=20))
def test_any_bits_are_listed(data: bytes, below: bytes) -> None:
    assert disassemble(write_code(data.hex(), refs=(below.hex(), "A0"))) is not None
