"""What a detector is: questions about contracts in, findings out, whoever answers the questions.

A detector is a generator. It yields questions and is sent the stack of each answer; it returns
what it found. An answer that fails, or has another shape, raises Mismatch in it: it is no such
contract. So it reads in order, while the one who drives it may gather questions of many.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from tonlake.ingest.derive.contract.stack import Address, Value


class Question(NamedTuple):
    """A get-method that is to be asked, and of whom.

    Where the answer is not ``required``, None is sent in place of a failure.
    """

    address: Address
    method: str
    arguments: tuple[Value, ...] = ()
    required: bool = True


class Finding(NamedTuple):
    """A row of a table of contracts, without the columns about the account."""

    table: str
    fields: dict[str, Any]


Detection = Generator[Question, Any, list[Finding]]

Detector = Callable[[Address], Detection]


def address_fields(name: str, address: Address | None) -> dict[str, Any]:
    """Return the two columns of an address."""
    workchain, account = (None, None) if address is None else address
    return {f"{name}_workchain": workchain, name: account}


def raw_text(address: Address | None) -> str | None:
    """Return the raw form of an address, if there is one."""
    return None if address is None else str(address)
