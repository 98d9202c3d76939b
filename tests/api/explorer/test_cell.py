"""Cells of tables carry the name of their column, whatever stands around them."""

from tonlake.api.explorer.frame import label_cells

HEAD = (
    '<thead><tr><th scope="col">Account</th><th scope="col" class="number">Balance</th>'
    '<th scope="col"><span class="quiet">As a bar</span></th></tr></thead>'
)


def _make_table(rows: str) -> str:
    return f"<p>before <td> it</p><table>\n{HEAD}\n<tbody>{rows}</tbody>\n</table><table></table>"


def test_cells_behind_the_first_are_labelled() -> None:
    page = _make_table(
        '<tr><td>a</td><td class="number">1</td><td><svg/></td></tr>\n'
        '<tr><th scope="row">b</th><td>2</td><td></td></tr>'
    )
    assert label_cells(page) == _make_table(
        '<tr><td>a</td><td class="number" data-label="Balance">1</td><td><svg/></td></tr>\n'
        '<tr><th scope="row">b</th><td data-label="Balance">2</td><td></td></tr>'
    )


def test_labels_and_tables_of_other_forms_are_kept() -> None:
    page = _make_table('<tr><td>a</td><td data-label="Own">1</td><td>2</td><td>no column</td></tr>')
    assert label_cells(page) == page
    assert label_cells("<table><tr><td>a</td><td>b</td></tr></table>") == (
        "<table><tr><td>a</td><td>b</td></tr></table>"
    )
