"""Recorded responses of the public service have our fields, of our types, and no others."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.resource.answer import (
    AddressBook,
    AddressInformation,
    MasterchainInfo,
    Metadata,
    Trace,
)

Fault = tuple[str, str]

LATER = frozenset({"interfaces", "decoded_opcode", "extra_flags", "finality", "decoded"})
"""Fields that the service did not have yet when some of the answers were recorded."""

PENDING = frozenset({"trace_external_hash"})
"""Fields of emulated transactions alone."""

ANYTHING = inspect.AnyType | inspect.RawType | inspect.CustomType
"""Types of ours that hold whatever there is: ``object`` is a custom one."""

EMULATED_LACK = frozenset({"block_ref", "mc_block_seqno"})


def compare(value: Any, kind: inspect.Type, path: str) -> Iterator[Fault]:
    """Yield what in a recorded value does not fit one of our types."""
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    fitting = [option for option in options if isinstance(option, _kind_of(value))]
    if not fitting:
        if not any(isinstance(option, ANYTHING) for option in options):
            yield path, f"{value!r:.60} is none of {options}"
        return
    chosen = fitting[0]
    if isinstance(chosen, inspect.StructType):
        yield from _compare_fields(value, chosen, path)
    elif isinstance(chosen, inspect.DictType):
        for key, item in value.items():
            yield from compare(item, chosen.value_type, f"{path}.{key[:8]}")
    elif isinstance(chosen, inspect.ListType):
        for item in value:
            yield from compare(item, chosen.item_type, f"{path}[]")


def _kind_of(value: Any) -> type | tuple[type, ...]:
    if value is None:
        return inspect.NoneType
    if isinstance(value, bool):
        return inspect.BoolType
    by_type: dict[type, tuple[type, ...]] = {
        int: (inspect.IntType,),
        str: (inspect.StrType,),
        list: (inspect.ListType,),
        dict: (inspect.StructType, inspect.DictType),
    }
    return by_type[type(value)]


def _compare_fields(value: dict[str, Any], kind: inspect.StructType, path: str) -> Iterator[Fault]:
    fields = {field.name: field for field in kind.fields}
    for key, item in value.items():
        if key in fields:
            yield from compare(item, fields[key].type, f"{path}.{key}")
        elif key not in PENDING:
            yield f"{path}.{key}", "is no field of ours"
    for name, field in fields.items():
        if field.required and name not in value and name not in LATER:
            yield f"{path}.{name}", "is not in the recording"


def _find_faults(value: Any, kind: Any, path: str) -> list[Fault]:
    return list(compare(value, inspect.type_info(kind), path))


def _read(shared: Path, folder: str) -> list[tuple[str, Any]]:
    files = sorted((shared / "data" / "responses" / "v3" / folder).glob("*.json"))
    assert files
    return [(file.name, json.loads(file.read_bytes())) for file in files]


@pytest.mark.parametrize(
    ("folder", "kind"), [("account", AddressInformation), ("masterchainInfo", MasterchainInfo)]
)
def test_complete_answers(shared: Path, folder: str, kind: type) -> None:
    for name, recorded in _read(shared, folder):
        assert _find_faults(recorded, kind, name) == []


def test_traces(shared: Path) -> None:
    for name, recorded in _read(shared, "traces"):
        for trace in recorded["traces"]:
            shown = {key: item for key, item in trace.items() if key != "actions"}
            assert _find_faults(shown, Trace, name) == []


@pytest.mark.parametrize("folder", ["traces", "emulate"])
def test_books_and_metadata(shared: Path, folder: str) -> None:
    tokens = 0
    for name, recorded in _read(shared, folder):
        assert _find_faults(recorded["address_book"], AddressBook, name) == []
        assert _find_faults(recorded["metadata"], Metadata, name) == []
        tokens += len(recorded["metadata"])
    assert tokens


def test_emulated_transactions(shared: Path) -> None:
    for name, recorded in _read(shared, "emulate"):
        for transaction in recorded["transactions"].values():
            faults = _find_faults(transaction, Transaction, name)
            assert [fault for fault in faults if fault[0].split(".")[-1] not in EMULATED_LACK] == []
