"""Describes the phases of a transaction, its fees and its balance changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.explorer.words.form import write_count, write_ton
from tonlake.api.explorer.words.outcome import (
    BAD,
    GOOD,
    PLAIN,
    explain_bounce,
    explain_phases,
    explain_skip,
)
from tonlake.ingest.derive.tvm.call import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.explorer.words.names import Names
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
COINS = frozenset(
    {
        *("storage_fees_collected", "storage_fees_due", "due_fees_collected", "credit"),
        *("gas_fees", "total_fwd_fees", "total_action_fees"),
        *("req_fwd_fees", "msg_fees", "fwd_fees"),
    }
)
"""Fields of phases in nanoton."""


class Phase(msgspec.Struct, frozen=True):
    """A phase of a transaction; ``kind`` is good, plain or bad."""

    title: str
    kind: str
    word: str
    text: str
    """One sentence about the phase."""

    facts: Facts
    meanings: dict[str, str]
    """Meanings of codes by field name."""


class Posting(msgspec.Struct, frozen=True):
    """One change of the balance, in signed nanoton."""

    title: str
    amount: int


def list_phases(transaction: Transaction, names: Names) -> list[Phase]:
    """Return the phases of a transaction, each with the fields it has."""
    meanings = explain_phases(transaction, names)
    phases = []
    for name, title in _PHASES:
        phase = getattr(transaction.description, name)
        if phase is msgspec.UNSET:
            continue
        fields: Facts = msgspec.to_builtins(phase)
        known = {field: text for (of, field), text in meanings.items() if of == title}
        kind, word, text = _WORDS[title](fields, known)
        facts = {key: _flatten(value) for key, value in fields.items()}
        phases.append(Phase(title, kind, word, text, facts, known))
    return phases


def _flatten(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return value


def _describe_storage(facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    text = f"{write_ton(facts.get('storage_fees_collected', 0))} collected for storage"
    due = int(facts.get("storage_fees_due", 0) or 0)
    if due:
        return BAD, "unpaid", f"{text}; {write_ton(due)} still due"
    change = facts.get("status_change", "unchanged")
    return PLAIN, "paid", text if change == "unchanged" else f"{text}; account {change}"


def _describe_credit(facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    return PLAIN, "credited", f"{write_ton(facts.get('credit', 0))} added to the balance"


def _describe_compute(facts: Facts, meanings: Mapping[str, str]) -> tuple[str, str, str]:
    if facts.get("skipped"):
        return PLAIN, "skipped", explain_skip(str(facts.get("reason", "")))
    exit_code = facts.get("exit_code")
    text = f"exit code {exit_code}"
    if "exit_code" in meanings:
        text += f": {meanings['exit_code']}"
    if "gas_used" in facts:
        steps, used = write_count(facts.get("vm_steps", 0)), write_count(facts["gas_used"])
        text += f"; {steps} steps, {used} gas for {write_ton(facts.get('gas_fees', 0))}"
    # Recorded traces have only the exit code.
    good = bool(facts.get("success", exit_code in SUCCESS))
    return (GOOD, "succeeded", text) if good else (BAD, "failed", text)


def _describe_action(facts: Facts, meanings: Mapping[str, str]) -> tuple[str, str, str]:
    count, sent = facts.get("tot_actions", 0), facts.get("msgs_created", 0)
    text = f"{count} {'action' if count == 1 else 'actions'}"
    text += f", {sent} {'message' if sent == 1 else 'messages'} sent"
    if facts.get("skipped_actions"):
        text += f", {facts['skipped_actions']} skipped because of an error (send mode 2)"
    if facts.get("success"):
        return GOOD, "succeeded", text
    text = f"result code {facts.get('result_code')}; {text}"
    if "result_code" in meanings:
        text = f"{meanings['result_code']}; {text}"
    return BAD, "failed", text


def _describe_bounce(facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    kind = str(facts.get("type") or "")
    return BAD, "bounced" if kind == "ok" else "not bounced", explain_bounce(kind)


def _describe_split(_facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    return PLAIN, "prepared", "the account is split or merged with its sibling shard"


_WORDS = {
    "Storage": _describe_storage,
    "Credit": _describe_credit,
    "Compute": _describe_compute,
    "Action": _describe_action,
    "Bounce": _describe_bounce,
    "Split": _describe_split,
}


def split_fees(transaction: Transaction) -> dict[str, int]:
    """Return the components of the total fees of a transaction, in nanoton."""
    about = transaction.description
    total = int(transaction.total_fees)
    message = transaction.in_msg
    parts = {
        "Storage": _read(about.storage_ph, "storage_fees_collected"),
        "Gas": _read(about.compute_ph, "gas_fees"),
        "Actions": _read(about.action, "total_action_fees"),
        "Bounce": _read(about.bounce, "msg_fees"),
    }
    # The import fee of an external message has no field; the account always pays it.
    rest = "Message import" if message is not None and not message.source else "Other"
    return parts | {rest: max(0, total - sum(parts.values()))}


def _read(phase: object, name: str) -> int:
    return int(getattr(phase, name, None) or 0)


def list_postings(transaction: Transaction) -> list[Posting]:
    """Return the changes of the account's balance, in order.

    If both balances are known, the changes sum to their difference: the last entry is the part no
    field explains, such as TON that the masterchain creates or the deletion of an account.
    """
    before, after = transaction.account_state_before, transaction.account_state_after
    message = transaction.in_msg
    sent = transaction.out_msgs
    lines = [
        Posting("Received with the message", int((message and message.value) or 0)),
        Posting("Fees", -int(transaction.total_fees)),
        Posting("Sent with messages", -sum(int(each.value or 0) for each in sent)),
        Posting(
            "Forward fees of sent messages",
            -sum(int(each.fwd_fee or 0) + int(each.ihr_fee or 0) for each in sent),
        ),
    ]
    if before and after and before.balance is not None and after.balance is not None:
        change = int(after.balance) - int(before.balance)
        rest = change - sum(line.amount for line in lines)
        lines.append(Posting("Other changes", rest))
    return [line for line in lines if line.amount]
