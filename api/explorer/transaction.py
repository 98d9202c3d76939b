"""The page of a transaction: its phases, what it cost, and its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import AnswerNotFound
from tonlake.api.explorer import chart
from tonlake.api.explorer.frame import Elsewhere, Question, Shown, read_hash
from tonlake.api.v3.page.coverage import check_no_gap
from tonlake.api.v3.page.transaction_page import answer_transactions

if TYPE_CHECKING:
    from tonlake.api.v3.layout.transaction import Transaction

Facts = dict[str, Any]

_PHASES = (
    ("storage_ph", "Storage"),
    ("credit_ph", "Credit"),
    ("compute_ph", "Compute"),
    ("action", "Action"),
    ("bounce", "Bounce"),
    ("split_info", "Split"),
)
_COINS = frozenset(
    {
        *("storage_fees_collected", "storage_fees_due", "due_fees_collected", "credit"),
        *("gas_fees", "total_fwd_fees", "total_action_fees"),
        *("req_fwd_fees", "msg_fees", "fwd_fees"),
    }
)
"""Fields of phases that are nanoton."""


def show_transaction(question: Question) -> Shown | Elsewhere:
    """Show a transaction by its hash.

    Raises:
        AnswerNotFound: there is none of this hash.
        NotCovered: the lake has gaps, and it may lie there.
    """
    tx_hash = read_hash(question)
    keys = question.call.reader.rows("v3/transaction_keys_by_hash", hashes=[tx_hash])
    if not keys:
        check_no_gap(question.call.reader)
        raise AnswerNotFound(f"transaction {tx_hash.hex()} not found in this lake")
    found = answer_transactions(question.call, keys)
    question.names.learn(found.address_book)
    transaction = found.transactions[0]
    values = {
        "each": transaction,
        "phases": list_phases(transaction),
        "fees": chart.slice_bar(split_fees(transaction)),
        "forward": sum(int(message.fwd_fee or 0) for message in transaction.out_msgs),
        "coins": _COINS,
    }
    return Shown("transaction.html", f"Transaction {tx_hash.hex()[:8]}", values)


def list_phases(transaction: Transaction) -> list[tuple[str, Facts]]:
    """Return the phases that a transaction went through, each with the fields that it has."""
    phases = []
    for name, title in _PHASES:
        phase = getattr(transaction.description, name)
        if phase is not msgspec.UNSET:
            fields: Facts = msgspec.to_builtins(phase)
            phases.append((title, {key: _flatten(value) for key, value in fields.items()}))
    return phases


def _flatten(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return value


def split_fees(transaction: Transaction) -> dict[str, int]:
    """Return what makes up the total fees of a transaction, in nanoton."""
    about = transaction.description
    total = int(transaction.total_fees)
    message = transaction.in_msg
    parts = {
        "Storage": _read(about.storage_ph, "storage_fees_collected"),
        "Gas": _read(about.compute_ph, "gas_fees"),
        "Actions": _read(about.action, "total_action_fees"),
    }
    # Nobody but the account pays for a message from outside; no field has that part alone.
    rest = "Message import" if message is not None and not message.source else "Other"
    return parts | {rest: max(0, total - sum(parts.values()))}


def _read(phase: object, name: str) -> int:
    return int(getattr(phase, name, None) or 0)
