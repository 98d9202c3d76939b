"""Subscriptions: plugins of wallets (version 4) that take payments, and their removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import call
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

PAYMENT_REQUEST, PAYMENT_CONFIRMED = 0x706C7567, 0xF06C7567
PAYMENT, DESTRUCT = 0x73756273, 0x64737472


def _make_subscribe(match: Match, _interfaces: Interfaces) -> Draft:
    """A wallet pays its subscription, which pays the beneficiary."""
    message, request = match.block.message, match.get("request")
    amount = message.value
    if request is not None:
        amount = request.message.arguments().skip(64).coins()
    columns = {
        "source": message.source,
        "destination": match["payment"].message.destination,
        "destination_secondary": message.destination,
        "amount": amount,
    }
    failed = request is not None and request.failed
    return Draft("subscribe", columns, failed=failed)


def _make_unsubscribe(match: Match, _interfaces: Interfaces) -> Draft:
    """A wallet removes its subscription, which tells the beneficiary."""
    message, told = match.block.message, match.get("told")
    columns = {
        "source": message.source,
        "destination": None if told is None else told.message.destination,
        "destination_secondary": message.destination,
    }
    return Draft("unsubscribe", columns)


SUBSCRIBE_RULE = Rule(
    "subscription.subscribe",
    call(PAYMENT_CONFIRMED)
    .then(call(PAYMENT, name="payment"))
    .after(call(PAYMENT_REQUEST, name="request").maybe),
    _make_subscribe,
)
UNSUBSCRIBE_RULE = Rule(
    "subscription.unsubscribe",
    call(DESTRUCT).then(call(DESTRUCT, name="told").maybe),
    _make_unsubscribe,
)
