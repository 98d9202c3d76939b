"""Describes the outcome of a transaction: received, bounced, or failed in which phase and why."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tonlake.ingest.derive.tvm.call import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.api.explorer.words.names import Names
    from tonlake.api.v3.layout.transaction import ComputePhase, Transaction

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


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a transaction: ``word`` sums it up, ``detail`` gives the reason or is "".

    ``kind`` is good, plain (neither good nor bad) or bad.
    """

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
    """Return the meaning of an exit code for a contract with ``interfaces``; "" if unknown.

    The longest matching scope wins: a governed jetton wallet before any jetton wallet.
    """
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


def judge(transaction: Transaction, interfaces: Sequence[str] = ()) -> Outcome:
    """Return the outcome of a transaction of an account with ``interfaces``."""
    about = transaction.description
    compute, action = about.compute_ph, about.action
    if compute is not UNSET and compute.skipped is True:
        return _judge_skipped(transaction, compute)
    if compute is not UNSET and _has_failed(compute):
        code = compute.exit_code
        meaning = explain_exit_code(code, interfaces) if isinstance(code, int) else ""
        text = _name_code("compute phase", "exit code", code, meaning)
        return Outcome(BAD, "failed", _join(text, _describe_bounce(transaction)))
    if action is not UNSET and action.success is False:
        code = action.result_code
        meaning = explain_result_code(code) if isinstance(code, int) else ""
        if not meaning and action.no_funds is True:
            meaning = "not enough TON"
        text = _name_code("action phase", "result code", code, meaning)
        return Outcome(BAD, "failed", _join(text, _describe_bounce(transaction)))
    if about.aborted is True:
        return Outcome(BAD, "failed", _describe_bounce(transaction))
    return Outcome(GOOD, "succeeded", _describe_ignored(transaction))


def _has_failed(compute: ComputePhase) -> bool:
    """Return whether the run failed; recorded traces have only the exit code."""
    if compute.success is UNSET:
        return isinstance(compute.exit_code, int) and compute.exit_code not in SUCCESS
    return compute.success is False


def judge_with(transaction: Transaction, names: Names) -> Outcome:
    """Return the outcome of a transaction, with the interfaces of its account from ``names``."""
    return judge(transaction, names.interfaces(transaction.account))


def explain_phases(transaction: Transaction, names: Names) -> dict[tuple[str, str], str]:
    """Return the meanings of codes by phase title and field name."""
    compute, action = transaction.description.compute_ph, transaction.description.action
    found = {}
    if compute is not UNSET and isinstance(compute.exit_code, int):
        meaning = explain_exit_code(compute.exit_code, names.interfaces(transaction.account))
        found["Compute", "exit_code"] = meaning
    if compute is not UNSET and isinstance(compute.reason, str):
        found["Compute", "reason"] = _SKIPPED.get(compute.reason, "")
    if action is not UNSET and isinstance(action.result_code, int):
        found["Action", "result_code"] = explain_result_code(action.result_code)
    return {place: meaning for place, meaning in found.items() if meaning}


def explain_skip(reason: str) -> str:
    """Return the reason for skipping the compute phase as text."""
    return _SKIPPED.get(reason, f"compute phase skipped: {reason or 'unknown reason'}")


def explain_new_bounce(phase: object, code: int, interfaces: Sequence[str]) -> str:
    """Return why a message came back, from its fields (TEP-503: ``bounced_by_phase``).

    ``interfaces`` are those of the account that returned it.
    """
    if phase == _SKIPPED_PHASE:
        return explain_skip(_SKIP_REASONS.get(code, ""))
    if phase == _ACTION_PHASE:
        what, meaning = "its actions failed", explain_result_code(code)
    else:
        what, meaning = "the contract failed", explain_exit_code(code, interfaces)
    return f"{what} with {code}: {meaning}" if meaning else f"{what} with {code}"


def explain_bounce(kind: str) -> str:
    """Return the result of the bounce phase as text; "" if unknown."""
    return _BOUNCED.get(kind, "")


def _judge_skipped(transaction: Transaction, compute: ComputePhase) -> Outcome:
    """Return the outcome without a TVM run: most often TON sent to an account without code.

    Without a bounce phase no TON was returned: the account keeps it.
    """
    reason = compute.reason if isinstance(compute.reason, str) else ""
    why = explain_skip(reason)
    if transaction.description.bounce is not UNSET:
        return Outcome(BAD, "bounced", _join(why, _describe_bounce(transaction)))
    if reason == "no_state":
        return Outcome(GOOD, "received", why)
    return Outcome(PLAIN, "not run", why)


def _name_code(phase: str, kind: str, code: object, meaning: str) -> str:
    text = f"{phase}, {kind} {code}" if isinstance(code, int) else phase
    return f"{text}: {meaning}" if meaning else text


def _describe_bounce(transaction: Transaction) -> str:
    bounce = transaction.description.bounce
    return "" if bounce is UNSET else explain_bounce(bounce.type or "")


def _describe_ignored(transaction: Transaction) -> str:
    action = transaction.description.action
    skipped = 0 if action is UNSET else action.skipped_actions
    if not isinstance(skipped, int) or not skipped:
        return ""
    are = "action was" if skipped == 1 else "actions were"
    return f"{skipped} {are} skipped because of an error (send mode 2)"


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))
