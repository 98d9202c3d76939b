"""Cells of tables with the name of their column, which narrow screens show beside each."""

from __future__ import annotations

import re

_TABLE = re.compile(r"<thead>(.*?)</thead>(.*?)</table>", re.DOTALL)
_HEAD = re.compile(r'<th scope="col"[^>]*>(.*?)</th>', re.DOTALL)
_CELL = re.compile(r"<(t[dh])( [^>]*)?>")
_ROW = "<tr>"
_UNSEEN = '<span class="quiet">'
"""Names for screen readers alone."""


def label_cells(page: str) -> str:
    """Return a page whose cells carry ``data-label``; the first of a row needs none."""
    return _TABLE.sub(_label_table, page)


def _label_table(found: re.Match[str]) -> str:
    head, body = found.groups()
    names = ["" if name.startswith(_UNSEEN) else name for name in _HEAD.findall(head)]
    rows = (_label_row(row, names) for row in body.split(_ROW))
    return f"<thead>{head}</thead>{_ROW.join(rows)}</table>"


def _label_row(row: str, names: list[str]) -> str:
    """Return a row with labels; cells that have one keep it."""
    columns = iter(["", *names[1:]])

    def label(cell: re.Match[str]) -> str:
        tag, attributes = cell[1], cell[2] or ""
        name = next(columns, "")
        if not name or "data-label=" in attributes:
            return cell[0]
        return f'<{tag}{attributes} data-label="{name}">'

    return _CELL.sub(label, row)
