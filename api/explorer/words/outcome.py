"""Describes a transaction: its outcome and why, its phases, its fees and its balance changes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import UNSET

from tonlake.api.explorer.words.form import write_count, write_ton
from tonlake.api.explorer.words.names import Names
from tonlake.api.v3.layout.transaction import ComputePhase, Transaction
from tonlake.ingest.derive.tvm.call import SUCCESS

GOOD, PLAIN, BAD = "good", "plain", "bad"
COMPUTE, ACTION = "compute", "action"
"""Scopes of codes; other scopes are interface names."""

_SKIPPED = {
    "no_state": "the account has no code",
    "bad_state": "the state init of the message does not match the account",
    "no_gas": "the message has too little TON to buy gas",
    "suspended": "the account is suspended by the configuration",
}
"""Reasons for skipping the compute phase (TL-B ``ComputeSkipReason``)."""

_BOUNCED = {
    "ok": "the message was bounced",
    "nofunds": "it could not be bounced: not enough TON",
    "negfunds": "it could not be bounced: no TON left",
}
"""Results of the bounce phase (TL-B ``TrBouncePhase``)."""


_SKIPPED_PHASE, _ACTION_PHASE = 0, 2
_SKIP_REASONS = {-1: "no_state", -2: "bad_state", -3: "no_gas", -4: "suspended"}
"""Reasons for skipping the compute phase by the exit code of a bounce (TEP-503)."""


class ShownOutcome(msgspec.Struct, frozen=True):
    """An outcome in a word; ``kind`` is good, plain or bad, ``detail`` the reason or ""."""

    kind: str
    word: str
    detail: str = ""


@cache
def load_codes() -> Mapping[tuple[str, int], str]:
    """Return the meanings of codes by scope and code, from ``codes.txt``."""
    text = files("tonlake.api.explorer.words").joinpath("codes.txt").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            head, _, meaning = line.partition(": ")
            scope, code = head.split()
            found[scope, int(code)] = meaning
    return found


def explain_exit_code(code: int, interfaces: Sequence[str]) -> str:
    """Return the meaning of an exit code, by the longest scope of the interfaces; "" if unknown."""
    codes = load_codes()
    scopes = [
        scope
        for scope, known in codes
        if known == code and any(name.startswith(scope) for name in interfaces)
    ]
    return codes[max(scopes, key=len), code] if scopes else codes.get((COMPUTE, code), "")


def explain_result_code(code: int) -> str:
    """Return the meaning of a result code of the action phase; "" if unknown."""
    return load_codes().get((ACTION, code), "")


def judge(transaction: Transaction, names: Names) -> ShownOutcome:
    """Return the outcome of a transaction; ``names`` have the interfaces of its account."""
    about = transaction.description
    compute, action = about.compute_ph, about.action
    if compute is not UNSET and compute.skipped is True:
        return _judge_skipped(transaction, compute)
    if compute is not UNSET and _has_failed(compute):
        code = compute.exit_code
        interfaces = names.interfaces(transaction.account)
        meaning = explain_exit_code(code, interfaces) if isinstance(code, int) else ""
        text = _name_code("compute phase", "exit code", code, meaning)
    elif action is not UNSET and action.success is False:
        code = action.result_code
        meaning = explain_result_code(code) if isinstance(code, int) else ""
        if not meaning and action.no_funds is True:
            meaning = "not enough TON"
        text = _name_code("action phase", "result code", code, meaning)
    elif about.aborted is True:
        text = ""
    else:
        return ShownOutcome(GOOD, "succeeded", _describe_ignored(transaction))
    return ShownOutcome(BAD, "failed", _join(text, _describe_bounce(transaction)))


def _has_failed(compute: ComputePhase) -> bool:
    """Return whether the run failed; recorded traces have only the exit code."""
    if compute.success is UNSET:
        return isinstance(compute.exit_code, int) and compute.exit_code not in SUCCESS
    return compute.success is False


def explain_skip(reason: str) -> str:
    """Return the reason for skipping the compute phase as text."""
    return _SKIPPED.get(reason, f"compute phase skipped: {reason or 'unknown reason'}")


def explain_new_bounce(phase: object, code: int, interfaces: Sequence[str]) -> str:
    """Return why a contract with ``interfaces`` returned a message (TEP-503)."""
    if phase == _SKIPPED_PHASE:
        return explain_skip(_SKIP_REASONS.get(code, ""))
    if phase == _ACTION_PHASE:
        what, meaning = "its actions failed", explain_result_code(code)
    else:
        what, meaning = "the contract failed", explain_exit_code(code, interfaces)
    return f"{what} with {code}: {meaning}" if meaning else f"{what} with {code}"


def _judge_skipped(transaction: Transaction, compute: ComputePhase) -> ShownOutcome:
    """Return the outcome without a TVM run; without a bounce phase the account keeps the TON."""
    reason = compute.reason if isinstance(compute.reason, str) else ""
    why = explain_skip(reason)
    if transaction.description.bounce is not UNSET:
        return ShownOutcome(BAD, "bounced", _join(why, _describe_bounce(transaction)))
    if reason == "no_state":
        return ShownOutcome(GOOD, "received", why)
    return ShownOutcome(PLAIN, "not run", why)


def _name_code(phase: str, kind: str, code: object, meaning: str) -> str:
    text = f"{phase}, {kind} {code}" if isinstance(code, int) else phase
    return f"{text}: {meaning}" if meaning else text


def _describe_bounce(transaction: Transaction) -> str:
    bounce = transaction.description.bounce
    return "" if bounce is UNSET else _BOUNCED.get(bounce.type or "", "")


def _describe_ignored(transaction: Transaction) -> str:
    action = transaction.description.action
    skipped = 0 if action is UNSET else action.skipped_actions
    if not isinstance(skipped, int) or not skipped:
        return ""
    are = "action was" if skipped == 1 else "actions were"
    return f"{skipped} {are} skipped because of an error (send mode 2)"


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))


Facts = dict[str, Any]

_MEANINGS: dict[str, Callable[[Any, Sequence[str]], str]] = {
    "exit_code": explain_exit_code,
    "result_code": lambda code, _interfaces: explain_result_code(code),
    "reason": lambda reason, _interfaces: _SKIPPED.get(reason, ""),
}
"""Functions that explain the codes of phases, by field."""

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


def list_phases(transaction: Transaction, names: Names) -> list[Phase]:
    """Return the phases of a transaction, each with the fields it has."""
    interfaces = names.interfaces(transaction.account)
    phases = []
    for name, title, describe in _PHASES:
        phase = getattr(transaction.description, name)
        if phase is msgspec.UNSET:
            continue
        fields: Facts = msgspec.to_builtins(phase)
        known = {
            field: text
            for field, explain in _MEANINGS.items()
            if fields.get(field) is not None and (text := explain(fields[field], interfaces))
        }
        kind, word, text = describe(fields, known)
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


def _describe_bounce_phase(facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    kind = str(facts.get("type") or "")
    return BAD, "bounced" if kind == "ok" else "not bounced", _BOUNCED.get(kind, "")


def _describe_split(_facts: Facts, _meanings: Mapping[str, str]) -> tuple[str, str, str]:
    return PLAIN, "prepared", "the account is split or merged with its sibling shard"


_PHASES = (
    ("storage_ph", "Storage", _describe_storage),
    ("credit_ph", "Credit", _describe_credit),
    ("compute_ph", "Compute", _describe_compute),
    ("action", "Action", _describe_action),
    ("bounce", "Bounce", _describe_bounce_phase),
    ("split_info", "Split", _describe_split),
)


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


def list_postings(transaction: Transaction) -> list[tuple[str, int]]:
    """Return the changes of the account's balance, in order, each in signed nanoton.

    If both balances are known, the changes sum to their difference: the last entry is the part no
    field explains, such as TON that the masterchain creates or the deletion of an account.
    """
    before, after = transaction.account_state_before, transaction.account_state_after
    message = transaction.in_msg
    sent = transaction.out_msgs
    lines = [
        ("Received with the message", int((message and message.value) or 0)),
        ("Fees", -int(transaction.total_fees)),
        ("Sent with messages", -sum(int(each.value or 0) for each in sent)),
        (
            "Forward fees of sent messages",
            -sum(int(each.fwd_fee or 0) + int(each.ihr_fee or 0) for each in sent),
        ),
    ]
    if before and after and before.balance is not None and after.balance is not None:
        change = int(after.balance) - int(before.balance)
        rest = change - sum(amount for _title, amount in lines)
        lines.append(("Other changes", rest))
    return [line for line in lines if line[1]]
