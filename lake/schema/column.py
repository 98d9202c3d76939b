"""Column and Table: the types that describe every table of the lake."""

from functools import cached_property
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

ColumnType = Literal[
    "bool",
    "int8",
    "int32",
    "int64",
    "ints",
    "hash",
    "hashes",
    "bytes",
    "text",
    "texts",
    "json",
    "amount",
    "time",
    "date",
    "double",
    "scaled",
]

_TYPES: dict[ColumnType, tuple[pa.DataType, str]] = {
    "bool": (pa.bool_(), "BOOLEAN"),
    "int8": (pa.int8(), "TINYINT"),
    "int32": (pa.int32(), "INTEGER"),
    "int64": (pa.int64(), "BIGINT"),
    "hash": (pa.binary(32), "BLOB"),
    "bytes": (pa.binary(), "BLOB"),
    "text": (pa.string(), "VARCHAR"),
    "json": (pa.string(), "VARCHAR"),
    "amount": (pa.decimal128(38, 0), "DECIMAL(38, 0)"),
    "time": (pa.timestamp("us"), "TIMESTAMP"),
    "date": (pa.date32(), "DATE"),
    "double": (pa.float64(), "DOUBLE"),
    "scaled": (pa.decimal128(38, 9), "DECIMAL(38, 9)"),
    "hashes": (pa.list_(pa.binary(32)), "BLOB[]"),
    "ints": (pa.list_(pa.int32()), "INTEGER[]"),
    "texts": (pa.list_(pa.string()), "VARCHAR[]"),
}
"""Types that every engine reads: no unsigned 64-bit, no HUGEINT, no MAP, UNION or ENUM."""

ARROW_TYPES = {name: arrow for name, (arrow, _sql) in _TYPES.items()}
SQL_TYPES = {name: sql for name, (_arrow, sql) in _TYPES.items()}
"""DuckDB's types; querying DuckDB for them is the slowest part of a process's first connection."""


class Column(msgspec.Struct, frozen=True, cache_hash=True):
    """One column: name, type, description, and whether it may be NULL.

    A text may be one of a few ``values``, or a raw address (``0:`` and 64 uppercase hex digits).
    """

    name: str
    type: ColumnType
    doc: str
    nullable: bool = False
    values: tuple[str, ...] = ()
    is_address: bool = False

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field."""
        return pa.field(self.name, ARROW_TYPES[self.type], nullable=self.nullable)


DAY = Column("day", "date", "UTC day of the masterchain block; a filter skips files")
TX_TIME = Column("tx_time", "time", "now as UTC timestamp; a filter skips row groups")


class Table(msgspec.Struct, frozen=True, cache_hash=True, dict=True):
    """One table: its columns in file order, its key, and the order of its rows in a file."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    sort: tuple[str, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of every file of this table."""
        return pa.schema([column.arrow for column in self.columns])

    @cached_property
    def shown(self) -> tuple[Column, ...]:
        """The columns in SQL: those of a file, its day, and the time if the file has only now."""
        lacks_time = "now" in self.names and "time" not in self.names
        return (*self.columns, DAY, *[TX_TIME] * lacks_time)

    @cached_property
    def required(self) -> tuple[int, ...]:
        """Positions of the columns without NULLs."""
        return tuple(at for at, column in enumerate(self.columns) if not column.nullable)

    @cached_property
    def height(self) -> str:
        """The column with the masterchain block of a row; of a range, its last or first block."""
        names = ("mc_seqno", "mc_seqno_end", "first_mc_seqno")
        return next(name for name in names if name in self.names)

    @cached_property
    def order(self) -> pc.SortOptions:
        """The order of the rows, for Arrow."""
        return pc.SortOptions([(name, "ascending") for name in self.sort])

    @cached_property
    def struct(self) -> pa.StructType:
        """The fields of the schema as the type of one value."""
        return pa.struct(list(self.arrow))

    @cached_property
    def empty(self) -> pa.Table:
        """The table without rows; creating one takes half a millisecond."""
        return self.arrow.empty_table()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)
