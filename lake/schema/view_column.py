"""Columns shared by the views for people: addresses, amounts, times.

All are nullable: a view also shows rows that were recorded in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.schema.column import Column

if TYPE_CHECKING:
    from tonlake.lake.schema.column import ColumnType


def text(name: str, doc: str) -> Column:
    """Return a column of text."""
    return Column(name, "text", doc, nullable=True)


def number(name: str, doc: str) -> Column:
    """Return a column of integers."""
    return Column(name, "int64", doc, nullable=True)


def hash_column(name: str, doc: str) -> Column:
    """Return a column of 32-byte hashes."""
    return Column(name, "hash", doc, nullable=True)


def _keyed(name: str, id_name: str, workchain_name: str, doc: str) -> tuple[Column, ...]:
    return (
        text(name, f"{doc}, raw address"),
        Column(workchain_name, "int32", f"Its workchain, for {name}", nullable=True),
        hash_column(id_name, f"Its account id, 32 bytes, for {name}"),
    )


def address(name: str, doc: str) -> tuple[Column, ...]:
    """Return the columns of an address: raw text, workchain and account id."""
    return _keyed(name, f"{name}_id", f"{name}_workchain", doc)


def labelled(name: str, doc: str) -> tuple[Column, ...]:
    """Return the columns of an address and of its label."""
    return (*address(name, doc), text(f"{name}_label", f"Label of {name}, from labels"))


def account(doc: str) -> tuple[Column, ...]:
    """Return the columns of a row's own account, with the key names of the tables."""
    return _keyed("address", "account", "workchain", doc)


def amount(
    name: str, doc: str, unit: str = "the smallest unit", *, exact: ColumnType = "amount"
) -> tuple[Column, ...]:
    """Return the columns of an amount, scaled and exact."""
    return (
        Column(
            name,
            "scaled",
            f"{doc}, to nine places; NULL if its decimals are unknown",
            nullable=True,
        ),
        Column(f"{name}_units", exact, f"{doc}, exactly, in {unit}", nullable=True),
    )


LABEL = text("label", "Label of the account, from labels")
COMMENT = text("comment", "Text comment; NULL if there is none, or an encrypted one")
MC_SEQNO = number("mc_seqno", "Masterchain block that commits the row")
DAY = Column("day", "date", "UTC day of the masterchain block; a filter skips files", nullable=True)
INTERFACES = Column(
    "interfaces", "texts", "Interfaces of its code; NULL if none match", nullable=True
)
VALUE_TON = Column(
    "value_ton",
    "scaled",
    "Value in TON at the last price of the hour, or of the last hour with one within a day",
    nullable=True,
)


def time(doc: str) -> Column:
    """Return the column ``time``."""
    return Column("time", "time", f"{doc}, UTC", nullable=True)
