"""Questions within a session: which state a question is about, and which questions are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.stack import Cell, Mismatch

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.derive.contract.stack import Question, Value


class Posed(NamedTuple):
    """A question to a contract in the state after a masterchain block."""

    question: Question
    state: AccountState
    mc_seqno: int


class NotRun(Mismatch):
    """No engine could run the get-method to its end: what it answers is unknown."""


def make_answer_key(question: Question, state: AccountState) -> Hashable:
    """Return a key that is equal only for the same question to an account with the same cells."""
    return (
        *(state.workchain, state.account, state.code_hash, state.data_hash),
        *(question.method, make_key(question.arguments)),
    )


def make_key(value: Value) -> Hashable:
    """Return a key that is equal only for equal arguments."""
    if isinstance(value, Cell):
        return value.hash
    if isinstance(value, tuple | list):
        return tuple(map(make_key, value))
    if isinstance(value, CellSlice):
        children = value.tree.refs(value.cell)[value.ref :]
        bits = value.bits_left
        return bits, value.peek_uint(bits), tuple(value.tree.hash(child) for child in children)
    return None if value is None else int(value)
