"""Small programs for the TVM, as instructions of its specification, and calls of them."""

from typing import Any

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    VERSION_PARAM,
    Context,
    GetMethodCall,
    PreviousBlocks,
    join_config,
    make_version_param,
)
from tonlake.ingest.derive.tvm.machine.run import replace_version

ENDLESS_LOOP = "90EA"
"""PUSHCONT {}, AGAIN."""
PUSH_FOREVER = "9170EA"
"""PUSHCONT { 0 PUSHINT }, AGAIN."""
CALL_ITSELF = "9220D820D8"
"""PUSHCONT { DUP EXECUTE }, DUP, EXECUTE."""
RECURSE = "9320D87020D8"
"""PUSHCONT { DUP EXECUTE 0 PUSHINT }, DUP, EXECUTE: every call waits for the next one."""
DOUBLE_FOREVER = "7093206F02EA"
"""0 PUSHINT, PUSHCONT { DUP PAIR }, AGAIN: a tuple of 2^n values."""
NEST_FOREVER = "70926F01EA"
"""0 PUSHINT, PUSHCONT { SINGLE }, AGAIN: a tuple in a tuple in a tuple."""
DEEPEN_CELL = "C8C993C8CCC9EA"
"""NEWC ENDC, PUSHCONT { NEWC STREF ENDC }, AGAIN: a cell below a cell below a cell."""
CONTINUATION = "C8C990"
"""NEWC ENDC, PUSHCONT {}."""


CONTEXT = Context(
    workchain=0,
    account=bytes(32),
    now=5,
    balance=5,
    currencies={},
    config=join_config(((VERSION_PARAM, make_version_param(11)),)).root,
    version=11,
    previous=PreviousBlocks(),
)
"""An account on a network of version 11 without other parameters."""


def repeat(start: str, count: int, body: str) -> str:
    """Return a program that runs ``body`` (at most 15 bytes) ``count`` times after ``start``."""
    return f"{start}81{count:04X}9{len(body) // 2:X}{body}E4"


def assemble(code: str) -> bytes:
    """Return a cell with these instructions, in hex."""
    builder = CellBuilder().store_uint(int(code or "0", 16), len(code) * 4)
    return serialize_boc(builder.tree, [builder.end()], crc32c=True)


def make_call(code: str | bytes, *stack: Any, **fields: Any) -> GetMethodCall:
    """Return a call of a program, which is hex or a bag of cells."""
    whole = assemble(code) if isinstance(code, str) else code
    context = fields.pop("context", CONTEXT)
    return GetMethodCall(whole, fields.pop("data", None), stack, context, **fields)


def make_data() -> bytes:
    """Return the data of the account of the recorded programs."""
    tree = CellTree()
    child = CellBuilder(tree).store_uint(9, 64).end()
    return serialize_boc(tree, [CellBuilder(tree).store_uint(7, 32).store_ref(child).end()])


def make_context(config: bytes, version: int, previous: PreviousBlocks | None) -> Context:
    """Return the surroundings of the recorded programs."""
    return Context(
        workchain=0,
        account=bytes([0x11]) * 32,
        now=1_750_000_000,
        balance=123_456_789_012,
        currencies={},
        config=replace_version(config, version),
        version=version,
        previous=previous,
        seed=bytes([7]) * 32,
    )
