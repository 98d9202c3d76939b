"""Flattens the list of a response into a table, for CSV, Arrow and Parquet.

Columns follow from the type of the list's items, so an empty page has them too. A field of a nested
object is ``outer.inner``; lists and objects without fixed fields are JSON text; numbers that are
text in JSON, such as amounts and logical times, stay text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SCALARS: dict[type[inspect.Type], pa.DataType] = {
    inspect.StrType: pa.string(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.BoolType: pa.bool_(),
}


class Leaf(msgspec.Struct, frozen=True):
    """A column: the path of fields that leads to it, and its type; None for JSON text."""

    path: tuple[str, ...]
    type: pa.DataType | None

    @property
    def name(self) -> str:
        """Name of the column."""
        return ".".join(self.path)


def list_rows(answer: object) -> list[Any] | None:
    """Return the list in a response: itself, or its first field that is a list of structs.

    None if there is no such list.
    """
    if isinstance(answer, list):
        return answer
    found = _find_list(type(answer)) if isinstance(answer, msgspec.Struct) else None
    return None if found is None else getattr(answer, found[0])


def has_list(kind: type) -> bool:
    """Return whether responses of a type have a list that ``tabulate`` can flatten."""
    return issubclass(kind, msgspec.Struct) and _find_list(kind) is not None


def tabulate(answer: object) -> pa.Table | None:
    """Return the list of a response as a table; None if it has no list."""
    rows = list_rows(answer)
    if rows is None:
        return None
    if isinstance(answer, msgspec.Struct):
        found = _find_list(type(answer))
        item = None if found is None else found[1]
    else:
        item = type(rows[0]) if rows and isinstance(rows[0], msgspec.Struct) else None
    if item is None:
        return None
    leaves = list_leaves(item)
    # Some items are already JSON, so all items are parsed from the JSON that would be sent.
    plain = msgspec.json.decode(msgspec.json.encode(rows))
    columns = [pa.array(_pick(plain, leaf), leaf.type or pa.string()) for leaf in leaves]
    return pa.table(columns, names=[leaf.name for leaf in leaves])


@cache
def list_leaves(item: type[msgspec.Struct]) -> tuple[Leaf, ...]:
    """Return the columns of a struct's fields."""
    return tuple(_walk(inspect.type_info(item), (), ()))


def _walk(kind: inspect.Type, path: tuple[str, ...], above: tuple[type, ...]) -> Iterator[Leaf]:
    known = _strip(kind)
    if isinstance(known, inspect.StructType) and known.cls not in above:
        for field in known.fields:
            yield from _walk(field.type, (*path, field.encode_name), (*above, known.cls))
        return
    yield Leaf(path, None if known is None else _SCALARS.get(type(known)))


def _strip(kind: inspect.Type) -> inspect.Type | None:
    """Return the type of an optional value; None if it has several types."""
    if isinstance(kind, inspect.Metadata):
        return _strip(kind.type)
    if not isinstance(kind, inspect.UnionType):
        return kind
    found = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    return _strip(found[0]) if len(found) == 1 else None


def _pick(rows: Sequence[Any], leaf: Leaf) -> Iterable[Any]:
    for row in rows:
        value = row
        for name in leaf.path:
            value = value.get(name) if isinstance(value, dict) else None
        if leaf.type is None and value is not None and not isinstance(value, str):
            yield msgspec.json.encode(value).decode()
        else:
            yield value


@cache
def _find_list(kind: type[msgspec.Struct]) -> tuple[str, type[msgspec.Struct]] | None:
    """Return the name and the struct of the first field that is a list of structs."""
    info = inspect.type_info(kind)
    for field in info.fields if isinstance(info, inspect.StructType) else ():
        item = _item_of(field.type)
        if item is not None:
            return field.name, item
    return None


def _item_of(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """Return the struct of a list's items, or None."""
    known = _strip(kind)
    item = _strip(known.item_type) if isinstance(known, inspect.ListType) else None
    return item.cls if isinstance(item, inspect.StructType) else None
