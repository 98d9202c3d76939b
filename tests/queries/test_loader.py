"""Query files: the header format, and rules that every file keeps."""

import re

import pytest

from tonlake.queries.errors import QueryMalformed
from tonlake.queries.loader import REQUIRED, NamedQuery, load_queries, parse_query

GOOD = """-- The block of a seqno.
--
-- $seqno bigint          seqno in its shard
-- $limit integer = 10    most rows
-- $shard bigint  = null  only of this shard
--
-- returns: workchain
select workchain
from blocks
where seqno = $seqno and ($shard is null or shard = $shard)
limit $limit
"""
QUERIES = sorted(load_queries().values(), key=lambda query: query.name)


def test_a_header_says_purpose_parameters_and_result() -> None:
    query = parse_query("x/y", GOOD)
    assert query.doc == "The block of a seqno."
    assert query.returns == "workchain"
    assert {name: item.default for name, item in query.parameters.items()} == {
        "seqno": REQUIRED,
        "limit": 10,
        "shard": None,
    }
    assert query.parameters["seqno"].type == "bigint"
    assert query.parameters["limit"].doc == "most rows"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("-- $seqno bigint          seqno in its shard\n", "", "differ in: seqno"),
        ("limit $limit", "", "differ in: limit"),
        ("limit $limit", "limit $limit offset $offset", "differ in: offset"),
        ("$seqno bigint", "$seqno number", "unreadable parameter line"),
        ("= 10 ", "= ten", "unreadable parameter line"),
        ("-- The block of a seqno.\n", "", "needs a purpose"),
        ("-- returns: workchain\n", "", "needs a purpose"),
        ("select workchain", "selct workchain", "does not parse"),
        ("limit $limit", "limit $limit; select 1", "2 statements"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(QueryMalformed, match=re.escape(reason)):
        parse_query("x/y", GOOD.replace(old, new))


def test_a_name_in_a_text_or_comment_is_no_parameter() -> None:
    text = "-- One.\n-- returns: x\nselect '$a' as x -- $b\n"
    assert parse_query("x", text).parameters == {}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_query_names_its_columns(query: NamedQuery) -> None:
    statement = "\n".join(line for line in query.sql.splitlines() if not line.startswith("--"))
    assert not re.search(r"select\s+(\w+\.)?\*", statement)
    assert all(len(line) <= 100 for line in query.sql.splitlines())


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_parameter_is_explained(query: NamedQuery) -> None:
    assert all(parameter.doc for parameter in query.parameters.values())
