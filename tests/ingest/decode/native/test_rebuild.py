"""Bags rebuilt by the extension equal the reference's; damaged rows give none."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.rebuilt import compare_rows, list_rows, spoil_rows
from tests.ingest.decode.block.test_recipe import wrapped
from tests.ingest.decode.block.test_transaction import transactions
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.block.transaction import decode_transaction

if TYPE_CHECKING:
    from tests.ingest.decode.block.samples import Columns
    from tests.ingest.networks import Network

pytestmark = pytest.mark.skipif(not native.is_used(), reason=native.describe())


def _decode(bag: bytes, version: int | None = None) -> tuple[Columns, list[Columns]]:
    row, lines = decode_transaction(bag, global_version=version)
    return row, lines


def test_bags_of_a_network_are_those_of_the_reference(network: Network) -> None:
    for row, lines in list_rows(decode_bundles(network.bundles[::20])):
        assert compare_rows(row, lines) == "made by both"


@settings(max_examples=100, deadline=None)
@given(wrapped(), st.integers(0, 1 << 32))
def test_bags_around_any_messages_are_those_of_the_reference(
    sample: tuple[bytes, int, int | None], seed: int
) -> None:
    bag, _, version = sample
    row, lines = _decode(bag, version)
    if row["recipe"] is None:
        return
    assert compare_rows(row, lines) in ("made by both", "made by the reference")
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    for _ in range(8):
        compare_rows(*spoil_rows(row, lines, choices))


@settings(max_examples=100, deadline=None)
@given(transactions(), st.integers(0, 1 << 32))
def test_bags_of_any_transactions_are_those_of_the_reference(
    sample: tuple[bytes, Columns], seed: int
) -> None:
    row, lines = _decode(sample[0])
    if row["recipe"] is None:
        return
    # The extension reads signed numbers: it may decline a logical time that no chain reaches.
    is_huge = max(row["lt"], row["prev_trans_lt"]) >= 1 << 63
    made = {"made by both", "made by the reference"} if is_huge else {"made by both"}
    assert compare_rows(row, lines) in made
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    for _ in range(8):
        compare_rows(*spoil_rows(row, lines, choices))


@pytest.mark.parametrize(
    "given_rows",
    [
        ((), ()),
        ((None,) * 200, ()),
        (None, ()),
        ((), None),
        ((), (1, 2)),
        ((), ((),) * 3),
    ],
)
def test_what_is_no_row_is_declined(given_rows: tuple[Any, Any]) -> None:
    assert native._extension.rebuild(*given_rows, 1) is None
