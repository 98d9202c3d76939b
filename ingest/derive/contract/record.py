"""Builds the rows of the contract tables, and names the interfaces of codes.

The names are those of TON Center. They are derived from the code hash and from the get-methods in
the code, none of which is run; ``interfaces.txt`` is the table of names.
"""

import base64
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from tonlake.ingest.decode.cell.dictionary import list_keys
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.stack import Finding
from tonlake.ingest.derive.contract.world import KnownAccount, World
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.errors import BocError
from tonlake.lake.file.rows import make_rows
from tonlake.lake.schema import HISTORY_TABLES, INTERFACES, UNANSWERED_METHODS, Table

Row = dict[str, Any]


def make_history(findings: Iterable[tuple[KnownAccount, Finding]]) -> dict[str, pa.Table]:
    """Return the rows of the tables that have a row for each state of a contract."""
    tables = (*HISTORY_TABLES, UNANSWERED_METHODS)
    rows: dict[str, list[Row]] = {table.name: [] for table in tables}
    for state, finding in findings:
        own = zip(_STATE_NAMES, _read_state(state), strict=True)
        rows[finding.table].append(dict(own) | finding.fields)
    return {table.name: make_table(table, rows[table.name]) for table in tables}


def make_interfaces(states: Iterable[KnownAccount], world: World) -> pa.Table:
    """Return a row for each code of the commit: its methods, and the names derived from them."""
    first: dict[bytes, int] = {}
    for state in states:
        if state.code_hash is not None:
            at = first.setdefault(state.code_hash, state.mc_seqno)
            first[state.code_hash] = min(at, state.mc_seqno)
    rows = []
    for code_hash, mc_seqno in sorted(first.items()):
        cell = world.find_cell(code_hash)
        methods = None if cell is None else read_method_ids(*cell)
        row = {"code_hash": code_hash, "mc_seqno": mc_seqno, "methods": methods}
        rows.append({**row, "names": name_interfaces(code_hash, methods)})
    return make_table(INTERFACES, rows)


def keep_first_codes(interfaces: pa.Table) -> pa.Table:
    """Return the first row of each code, which may occur in several parts of a commit."""
    first: dict[bytes, tuple[int, int]] = {}
    columns = (interfaces[name].to_pylist() for name in INTERFACES.key)
    for place, (code_hash, mc_seqno) in enumerate(zip(*columns, strict=True)):
        first[code_hash] = min(first.get(code_hash, (mc_seqno, place)), (mc_seqno, place))
    return interfaces.take(sorted(place for _mc_seqno, place in first.values()))


def make_table(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Return rows as Arrow; dicts of JSON columns become text, in insertion order of their keys."""
    written = list(rows)
    if not written:
        return table.empty
    names = [column.name for column in table.columns if column.type == "json"]
    if names:
        written = [{**row, **{name: _write_json(row[name]) for name in names}} for row in written]
    return make_rows(table, written)


def _write_json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


_STATE_NAMES = ("workchain", "account", "mc_seqno", "lt", "utime", "code_hash", "data_hash")
_read_state = attrgetter(*_STATE_NAMES)


METHOD_BITS = 19
_SET_CODEPAGE = 0xFF00  # SETCP0
_PUSH_DICTIONARY = 0xF4A413  # DICTPUSHCONST 19, with a dictionary


class InterfaceTable(NamedTuple):
    """Names by code hash, required method ids by name, and method names by id."""

    by_code: dict[bytes, str]
    by_methods: dict[str, frozenset[int]]
    methods: dict[int, str]


@lru_cache(1)
def load_interfaces() -> InterfaceTable:
    """Return the table of names."""
    table = InterfaceTable({}, {}, {})
    text = (files("tonlake.ingest.derive.contract") / "interfaces.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, methods, hashes = line.split("\t")
        table.by_code.update((base64.b64decode(code_hash), name) for code_hash in hashes.split())
        if methods:
            ids = {method_id(method): method for method in methods.split()}
            table.by_methods[name] = frozenset(ids)
            table.methods.update(ids)
    return table


def name_interfaces(code_hash: bytes, methods: Collection[int] | None) -> list[str] | None:
    """Return the interface names of a code (a library cell as such), sorted; None if none fits."""
    table = load_interfaces()
    if code_hash in table.by_code:
        return [table.by_code[code_hash]]
    return list(_match_methods(frozenset(methods or ()))) or None


_CODES_KEPT = 1_000


@lru_cache(_CODES_KEPT)
def _match_methods(present: frozenset[int]) -> tuple[str, ...]:
    by_methods = load_interfaces().by_methods
    return tuple(sorted(name for name, needed in by_methods.items() if needed <= present))


def read_method_ids(tree: CellTree, code: int) -> list[int] | None:
    """Return the ids of all methods in the dictionary of a code (DICTPUSHCONST 19), or None."""
    try:
        start = tree.slice(code)
        if start.load_uint(16) != _SET_CODEPAGE or start.load_uint(24) != _PUSH_DICTIONARY:
            return None
        return _list_keys(tree, start.load_ref())
    except BocError:
        return None


def find_method_ids(tree: CellTree, code: int) -> list[int] | None:
    """Return the ids of all methods of a code whose selector may follow other instructions.

    If there is no dictionary of methods, as in a library cell, those of the interface that the code
    is listed with; None if it may have any method.
    """
    with suppress(BocError):
        start = tree.slice(code)
        if _PUSH_DICTIONARY.to_bytes(3, "big") in tree.payload(code) and start.refs_left:
            return _list_keys(tree, start.load_ref())
    table = load_interfaces()
    name = table.by_code.get(tree.hash(code), "")
    if name.startswith("wallet_"):
        return []
    kinds = [kind for kind in table.by_methods if name.startswith(kind)]
    return sorted(table.by_methods[max(kinds, key=len)]) if kinds else None


_known: dict[bytes, tuple[int, ...]] = {}
"""Method ids by the hash of their dictionary: the same few codes occur in every block."""


def _list_keys(tree: CellTree, root: int) -> list[int]:
    dictionary = tree.hash(root)
    keys = _known.get(dictionary)
    if keys is None:
        if len(_known) >= _CODES_KEPT:
            _known.clear()
        keys = tuple(list_keys(tree, root, METHOD_BITS))
        _known[dictionary] = keys
    return list(keys)
