"""Elections of validators: stakes that go to the elector, and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import call
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

NEW_STAKE, STAKE_ACCEPTED = 0x4E73744B, 0xF374484C
RECOVER_STAKE, STAKE_RETURNED = 0x47657424, 0xF96F7324
ELECTOR = "-1:3333333333333333333333333333333333333333333333333333333333333333"


def _make_deposit(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A stake; it is taken when the elector says so."""
    message = match.block.message
    if message.destination != ELECTOR:
        return None
    columns = {"source": message.source, "amount": message.value}
    return Draft("election_deposit", columns, failed="confirmation" not in match)


def _make_recover(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A stake comes back."""
    message, confirmation = match.block.message, match.get("confirmation")
    if message.destination != ELECTOR:
        return None
    amount = None if confirmation is None else confirmation.message.value
    columns = {"source": message.source, "amount": amount}
    return Draft("election_recover", columns, failed=confirmation is None)


DEPOSIT_RULE = Rule(
    "election.deposit",
    call(NEW_STAKE).then(call(STAKE_ACCEPTED, name="confirmation").maybe),
    _make_deposit,
)
RECOVER_RULE = Rule(
    "election.recover",
    call(RECOVER_STAKE).then(call(STAKE_RETURNED, name="confirmation").maybe),
    _make_recover,
)
