"""No statement reveals where the lake is on the machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.api.sql.worker import check_hidden
from tonlake.lake.errors import QueryError

SHOWING = (
    "select current_setting('allowed_paths')",
    "select \"CURRENT_setting\"('allowed_' || 'paths')",
    "select 'home_directory'.current_setting()",
    "from duckdb_settings()",
    "from system.main.duckdb_settings() where name = 'secret_directory'",
    "from duckdb_secrets()",
    "select * from duckdb_tables(), duckdb_views(), which_secret('s3://x', 's3')",
    "from pg_settings",
    "from 'pg_settings'",
    "show allowed_paths",
    "show allowed_directories",
    "show 'allowed_paths'",
    "from (show allowed_paths)",
    "from query('from duckdb_' || 'settings()')",
    "from \"query\" /* é */ ('from duckdb_' || 'settings()')",
    "-- é\nfrom QUERY\n('from pg_' || 'settings')",
    "from system.main.query('from pg_' || 'settings')",
    "from query_table('pg_' || 'settings')",
    "from json_execute_serialized_sql(json_serialize_sql('from pg_' || 'settings'))",
    "select json_serialize_plan('select current_' || 'setting(''allowed_'' || ''paths'')')",
    "explain select current_setting('allowed_paths')",
    "pivot blocks on workchain using first(current_setting('allowed_paths'))",
)
NAMING = (
    (
        "select c::varchar from duckdb_views() as c union all"
        " select c::varchar from duckdb_databases() as c union all"
        " select c::varchar from duckdb_external_file_cache() as c union all"
        " select c::varchar from duckdb_logs as c union all"
        " select c::varchar from information_schema.views as c"
    ),
    "explain analyze from blocks",
    "from duckdb_extensions()",
    "select * from read_parquet('/proc/self/cwd/blocks/x.parquet')",
)


@pytest.fixture(scope="module")
def sql(demo_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(demo_lake, patient(sql={"enabled": True}))) as client:
        yield client


@pytest.mark.parametrize("query", SHOWING)
def test_settings_are_refused(query: str) -> None:
    with pytest.raises(QueryError, match="not available here"):
        check_hidden(query)


def test_the_service_refuses_settings(sql: TestClient[Any]) -> None:
    answer = sql.post("/sql", content=SHOWING[0].encode())
    assert answer.status_code == 422
    assert "not available here" in answer.json()["error"]


def test_no_answer_names_the_place(sql: TestClient[Any], demo_lake: Path) -> None:
    for query in NAMING:
        answer = sql.post("/sql", content=query)
        assert answer.status_code == (200 if query in NAMING[:2] else 422), answer.text
        for place in (demo_lake.parent, demo_lake.resolve().parent, "/root", "/home"):
            assert str(place) not in answer.text, query


def test_names_that_only_look_alike_are_not_refused() -> None:
    check_hidden("select 'query' as a, count(*) as query_count from blocks -- query")
