"""Reads the data dictionary, ``tables.txt`` and ``views.txt``, whose headers state the format.

The views are for people: readable names, times and amounts over the tables of the lake. In all of
them ``time`` is a UTC timestamp. An address is raw text, as in ``actions``, followed by its binary
key. Amounts are scaled by the decimals of their asset; the column ``…_units`` has them in the
smallest unit. The SQL of a view is ``lake/duck/sql/<name>.sql``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from tonlake.lake.schema.action_type import ACTION_TYPES, SALES
from tonlake.lake.schema.column import ARROW_TYPES, DAY, Column, ColumnType, Table

LISTS = {
    "account_statuses": ("uninit", "frozen", "active", "nonexist"),
    "action_types": ACTION_TYPES,
    "address_kinds": ("std", "none", "extern", "var"),
    "descriptions": (
        *("ord", "storage", "tick_tock"),
        *("split_prepare", "split_install", "merge_prepare", "merge_install"),
    ),
    "exchanges": ("stonfi", "stonfi_v2", "dedust", "dedust_v2", "tonco", "coffee"),
    "message_kinds": ("int", "ext_in", "ext_out"),
    "sales": SALES,
    "status_changes": ("unchanged", "frozen", "deleted"),
}
"""Lists of values that the dictionary names."""

_EXACT: dict[str, tuple[ColumnType, str]] = {
    "units": ("amount", "the smallest unit"),
    "nanoton": ("int64", "nanoton"),
    "price": ("amount", "nanoton"),
}
"""Type and unit of the exact column of an amount, by kind."""

_COMMENT = re.compile(r"^#.*\n", re.MULTILINE)
_KEY = "key: "
_SORT = "; sort: "

Columns = tuple[Column, ...]


class DictionaryEntry(NamedTuple):
    """A table or a view; ``order`` is the line of a table's key."""

    title: str
    doc: str
    order: str
    columns: Columns


def read_tables() -> dict[str, Table]:
    """Return the tables by name; their rows are by default in the order of the key."""
    tables = {}
    for title, doc, order, columns in read_entries("tables.txt"):
        key, _, sort = order.removeprefix(_KEY).partition(_SORT)
        names, by = (tuple(text.split(", ")) for text in (key, sort or key))
        tables[title] = Table(title, doc, columns, names, by)
    return tables


def read_entries(name: str, *, nullable: bool = False) -> Iterator[DictionaryEntry]:
    """Yield the entries of a file, whose unmarked columns are ``nullable`` or not."""
    text = files("tonlake.lake.schema").joinpath(name).read_text(encoding="utf-8")
    text = _COMMENT.sub("", text).replace("\n        ", " ")
    for listed, values in LISTS.items():
        text = text.replace(f"{{{listed}}}", ", ".join(values))
    known: dict[str, Columns] = {"+day": (msgspec.structs.replace(DAY, nullable=nullable),)}
    for block in re.split(r"\n{2,}", text.strip()):
        title, *lines = (line.strip() for line in block.splitlines())
        doc = "" if title.startswith("+") else lines.pop(0)
        order = lines.pop(0) if lines[0].startswith(_KEY) else ""
        columns = tuple(_read_columns(lines, known, nullable=nullable))
        if doc:
            yield DictionaryEntry(title, doc, order, columns)
            title = f"+{title.partition('(')[0]}"
        known[title] = columns


def _read_columns(
    lines: Iterable[str], known: Mapping[str, Columns], *, nullable: bool
) -> Iterator[Column]:
    for line in lines:
        if line in known:
            yield from known[line]
            continue
        name, kind, doc = line.split(" ", 2)
        may_lack = kind.endswith("?") or (nullable and not kind.endswith("!"))
        for column in _make_columns(name, kind.rstrip("?!"), doc):
            yield msgspec.structs.replace(column, nullable=True) if may_lack else column


def _make_columns(name: str, kind: Any, doc: str) -> Iterator[Column]:  # noqa: ANN401 - as read
    match kind:
        case "raw" | "raws":
            yield Column(name, "text" if kind == "raw" else "texts", doc, is_address=True)
        case "account":
            yield Column(f"{name}_workchain", "int32", f"Workchain of {name}")
            yield Column(name, "hash", doc)
        case "own":
            yield from _make_address(name, "workchain", "account", doc)
        case "address" | "labelled":
            yield from _make_address(name, f"{name}_workchain", f"{name}_id", doc)
            if kind == "labelled":
                yield Column(f"{name}_label", "text", f"Label of {name}, from labels")
        case "units" | "nanoton" | "price":
            exact, unit = _EXACT[kind]
            yield Column(name, "scaled", f"{doc}, to nine places; NULL if its decimals are unknown")
            yield Column(f"{name}_units", exact, f"{doc}, exactly, in {unit}")
        case "one_of":
            shown, _, hidden = doc.partition(" | ")
            values = hidden or shown.rpartition(": ")[2]
            yield Column(name, "text", shown, values=tuple(values.split(", ")))
        case _ if kind in ARROW_TYPES:
            yield Column(name, kind, doc)
        case _:
            raise ValueError(f"the data dictionary has {name} of the kind {kind}")


def _make_address(name: str, workchain_name: str, id_name: str, doc: str) -> Iterator[Column]:
    yield Column(name, "text", f"{doc}, raw address", is_address=True)
    yield Column(workchain_name, "int32", f"Its workchain, for {name}")
    yield Column(id_name, "hash", f"Its account id, 32 bytes, for {name}")


class View(msgspec.Struct, frozen=True):
    """A view, or a table macro with its ``parameters`` as shown to users, and its columns."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    parameters: str = ""

    @property
    def title(self) -> str:
        """The name, with the parameters of a macro."""
        return f"{self.name}({self.parameters})" if self.parameters else self.name


def _read_views() -> dict[str, View]:
    views = {}
    for title, doc, _order, columns in read_entries("views.txt", nullable=True):
        name, _, parameters = title.removesuffix(")").partition("(")
        views[name] = View(name, doc, columns, parameters)
    return views


VIEWS = _read_views()
"""Every view for people and every macro over them, each after the views that it reads."""

REFERENCE_TABLES = tuple(map(VIEWS.pop, ("labels", "code_labels", "stablecoins")))
"""Tables filled from settings rather than from the lake; every connection has them."""
