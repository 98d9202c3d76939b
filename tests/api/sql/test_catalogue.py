"""The schema shown beside the editor equals the database's."""

from pathlib import Path

from tonlake.api.sql.catalogue import list_macros, list_views
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_view_has_the_columns_of_the_database(demo_lake: Path) -> None:
    lake = connect(open_snapshot(demo_lake))
    listed = [view for group in list_views().values() for view in group]
    for view in listed:
        assert view.doc, view.name
        assert all(column.doc for column in view.columns), view.name
        if view.title == view.name:
            relation = lake.sql("from query_table($name)", params={"name": view.name})
            names = [column.name for column in view.columns]
            assert sorted(names) == sorted(relation.columns), view.name
    shown = {
        name
        for (name,) in lake.sql(
            "select view_name from duckdb_views() where not internal"
        ).fetchall()
    }
    assert shown <= {view.name for view in listed}


def test_every_macro_is_there_and_documented() -> None:
    text = (DOCS / "sql.md").read_text(encoding="utf-8")
    for macro in list_macros():
        assert macro.arguments
        assert macro.doc
        assert f"`{macro.name}(" in text, macro.name
