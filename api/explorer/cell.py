"""Labels table cells with their column name; narrow screens show it next to each cell."""

from __future__ import annotations

import re

_TABLE = re.compile(r"<thead>(.*?)</thead>(.*?)</table>", re.DOTALL)
_HEAD = re.compile(r'<th scope="col"[^>]*>(.*?)</th>', re.DOTALL)
_CELL = re.compile(r"<(t[dh])( [^>]*)?>")
_ROW = "<tr>"
_UNSEEN = '<span class="quiet">'
"""Starts a column name that is for screen readers only."""


def label_cells(page: str) -> str:
    """Return the page with ``data-label`` on all cells except the first of each row."""
    return _TABLE.sub(_label_table, page)


def _label_table(found: re.Match[str]) -> str:
    head, body = found.groups()
    names = ["" if name.startswith(_UNSEEN) else name for name in _HEAD.findall(head)]
    rows = (_label_row(row, names) for row in body.split(_ROW))
    return f"<thead>{head}</thead>{_ROW.join(rows)}</table>"


def _label_row(row: str, names: list[str]) -> str:
    """Return the row with labels; cells that already have one keep it."""
    columns = iter(["", *names[1:]])

    def label(cell: re.Match[str]) -> str:
        tag, attributes = cell[1], cell[2] or ""
        name = next(columns, "")
        if not name or "data-label=" in attributes:
            return cell[0]
        return f'<{tag}{attributes} data-label="{name}">'

    return _CELL.sub(label, row)
