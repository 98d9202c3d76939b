"""Get-method calls answered by a node's lite server, in comparable form."""

import base64
from collections.abc import Iterator
from typing import Any

from pytoniq_core import Address, Cell, Slice, begin_cell
from pytoniq_core.tlb.vm_stack import VmStack, VmTuple

RecordedCall = tuple[dict[str, Any], dict[str, Any]]
"""The body of a request, and the answer that was recorded."""


def list_calls(summary: dict[str, Any]) -> Iterator[tuple[str, RecordedCall]]:
    """Yield contract kind, method, request and answer of each call in an ``expected.json``."""
    for contract in summary["contracts"]:
        for name, answer in (contract.get("get_methods") or {}).items():
            body = {
                "address": answer.get("contract", contract["address"]),
                "method": name.split("(")[0],
                "stack": _write_arguments(name, contract),
            }
            yield f"{contract['kind']} {name}", (body, answer)


def _write_arguments(name: str, contract: dict[str, Any]) -> list[Any]:
    """Return the arguments that the recorded name shows in brackets."""
    if "(" not in name:
        return []
    if name == "get_wallet_address(owner)":
        owner = begin_cell().store_address(Address(contract["owner"])).end_cell()
        return [["tvm.Slice", base64.b64encode(owner.to_boc()).decode()]]
    if name == "get_nft_address_by_index(index)":
        return [["num", contract["index"]]]
    assert name == "dnsresolve(0x00, 0)"
    itself = begin_cell().store_uint(0, 8).end_cell()
    return [["tvm.Slice", base64.b64encode(itself.to_boc()).decode()], ["num", "0"]]


def read_recorded(answer: dict[str, Any]) -> list[Any]:
    """Return the recorded VmStack as integers, None, tuples and hashes of cells and slices."""
    cell = Cell.one_from_boc(base64.b64decode(answer["result_boc"]))
    return [_simplify(value) for value in VmStack.deserialize(cell.begin_parse())]


def _simplify(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, VmTuple):
        return tuple(_simplify(item) for item in value.list)
    is_slice = isinstance(value, Slice)
    assert is_slice or isinstance(value, Cell)
    return "slice" if is_slice else "cell", (value.to_cell() if is_slice else value).hash.hex()


def read_typed(entry: dict[str, Any]) -> Any:
    """Return a typed entry of an answer in the same form; lists as nested pairs."""
    kind = entry["@type"].removeprefix("tvm.stackEntry").lower()
    if kind == "number":
        return int(entry["number"]["number"])
    if kind in ("cell", "slice"):
        boc = base64.b64decode(entry[kind]["bytes"])
        return kind, Cell.one_from_boc(boc).hash.hex()
    items = [read_typed(item) for item in entry[kind]["elements"]]
    if kind == "tuple":
        return tuple(items)
    pairs: tuple[Any, Any] | None = None
    for item in reversed(items):
        pairs = (item, pairs)
    return pairs
