"""Views for people: readable names, times and amounts over the tables of the lake.

In all of them ``time`` is a UTC timestamp. An address is raw text, as in ``actions``, followed by
its binary key. Amounts are scaled by the decimals of their asset; the column ``…_units`` has them
in the smallest unit. ``views.txt`` describes each, its SQL is ``lake/duck/sql/<name>.sql``.
"""

import msgspec

from tonlake.lake.schema.column import Column
from tonlake.lake.schema.dictionary import read_entries


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
