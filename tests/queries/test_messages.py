"""Messages and their transactions from look-ups are those that the named queries give."""

from __future__ import annotations

import itertools

import pytest

from lake.lookup.opening import open_lookups
from lake.lookup.rebuild import rebuild_lookups
from lake.settings import LakeSettings
from lake.snapshot import open_snapshot
from queries.exact import Slice
from queries.messages import find_end_transactions, find_messages
from queries.reader import Reader
from tests.lake.chain import Chain, commit_chain

SETTINGS = LakeSettings()


@pytest.fixture(scope="module", params=["one run", "a run and memory", "memory"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A lake of few accounts, whose transactions share logical times."""
    lake, chain = tmp_path_factory.mktemp("located") / "lake", Chain(12, accounts=5)
    for at in range(1, 13):
        commit_chain(lake, chain, at, at)
        if at == 6 and request.param == "a run and memory":
            rebuild_lookups(lake)
    if request.param == "one run":
        rebuild_lookups(lake)
    snapshot = open_snapshot(lake)
    return Reader(snapshot, snapshot.connect(), lookups=open_lookups(snapshot, SETTINGS))


def list_hashes(reader: Reader) -> list[tuple[bytes, ...]]:
    """Sets of hashes of messages, as stored and in normal form, one of them unknown."""
    text = "select distinct msg_hash, coalesce(hash_norm, msg_hash) from messages order by all"
    pairs = reader.snapshot.connect().execute(text).fetchall()
    single = [(stored,) for stored, _ in pairs[:1]] + [(norm,) for _, norm in pairs[-1:]]
    several = tuple(norm for _, norm in pairs[:30])
    return [several, (bytes(32),), (pairs[0][0], bytes(32)), *single]


@pytest.mark.parametrize("direction", [None, "in", "out"])
def test_transactions_at_the_ends_of_messages(reader: Reader, direction: str | None) -> None:
    sizes = set()
    pages = Slice(100), Slice(100, 0, descending=False), Slice(1, 1)
    for hashes, page in itertools.product(list_hashes(reader), pages):
        found = find_end_transactions(reader, hashes, direction, page)
        assert found is not None
        wanted = reader.rows(
            "v3/transaction_keys_by_message",
            msg_hashes=list(hashes),
            direction=direction,
            **page._asdict(),
        )
        assert [(row["hash"], row["lt"]) for row in found] == [
            (row["hash"], row["lt"]) for row in wanted
        ]
        sizes.add(len(found))
    assert {0, 1} <= sizes
    assert max(sizes) > 1


@pytest.mark.parametrize("descending", [True, False])
def test_messages_by_hash(reader: Reader, *, descending: bool) -> None:
    for hashes in list_hashes(reader):
        page = Slice(100, 0, descending)
        found = find_messages(reader, page, hashes=hashes)
        assert found is not None
        wanted = reader.rows("v3/message_keys", msg_hashes=list(hashes), **page._asdict())
        names = ("msg_hash", "tx_hash", "tx_lt", "in_tx_hash", "out_tx_hash")
        assert [[row[name] for name in names] for row in found] == [
            [row[name] for name in names] for row in wanted
        ]


def test_without_look_ups_the_queries_are_left_to_answer(reader: Reader) -> None:
    plain = Reader(reader.snapshot, reader.snapshot.connect())
    assert find_end_transactions(plain, [bytes(32)], None, Slice(1)) is None
    assert find_messages(plain, Slice(1), hashes=[bytes(32)]) is None
