"""What copies of transactions have relative to the transaction, or leave out as it follows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.index.segment.declared import FACT_COLUMNS, FROM_PREVIOUS, OF_MESSAGE, OWN
from tonlake.lake.index.segment.rows import list_columns


def omit_derived(rows: pa.Table, messages: pa.Table) -> pa.Table:
    """Return transactions, NULL where the account's previous one or a message has the value.

    The number of the action list is relative to that of the state after.
    """
    previous = rows["prev_trans_hash"]
    previous = pc.if_else(pc.less(previous, rows.num_rows), previous, None)
    derived = {name: rows[other].take(previous) for name, other in FROM_PREVIOUS.items()}
    places = pa.array(np.arange(rows.num_rows), pa.uint32())
    received = messages.filter(pc.equal(messages["direction"], "in"))
    at = pc.index_in(places, value_set=pc.cast(received["row"], pa.uint32()))
    derived["in_msg_hash"] = received["msg_hash"].take(at)
    for name, values in derived.items():
        is_derived = pc.fill_null(pc.equal(values, rows[name]), fill_value=False)
        given = pc.if_else(is_derived, None, rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), name, given)
    return _replace(rows, "action_list_hash", rows["account_state_hash_after"])


def list_facts(states: pa.Table, places: pa.Array, after: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the facts of the states at some places; None for NULL."""
    held = _replace(states.select(list(FACT_COLUMNS)).take(places), "data_hash", after)
    columns = list_columns(held, FACT_COLUMNS)
    facts = zip(*columns, strict=True)
    return (each if known else None for each, known in zip(facts, places.is_valid(), strict=True))


def relate(messages: pa.Table, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return columns of messages as copies have them: relative to those of the transaction."""
    owners, related = messages["row"], {}
    for name, of_row in (("created_lt", "lt"), ("created_at", "now")):
        base = pc.cast(rows[of_row].take(owners), pa.int64())
        related[name] = pc.subtract(pc.cast(messages[name], pa.int64()), base)
    account = rows["account"].take(owners)
    for name in ("source", "destination"):
        related[name] = pc.if_else(pc.equal(messages[name], account), OWN, messages[name])
    for name in OF_MESSAGE:
        related[name] = _subtract(messages[name], messages["msg_hash"])
    after = rows["account_state_hash_after"].take(owners)
    related["msg_hash"] = pc.subtract(messages["msg_hash"], after)
    return related


def _replace(rows: pa.Table, name: str, bases: pa.ChunkedArray) -> pa.Table:
    """Return rows with a column of numbers relative to others."""
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, name, _subtract(rows[name], bases))


def _subtract(numbers: pa.ChunkedArray, bases: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return how far numbers are beyond others, below 0; the numbers themselves if they are not."""
    is_beyond = pc.greater(numbers, bases)
    return pc.if_else(is_beyond, pc.subtract(bases, numbers), numbers)
