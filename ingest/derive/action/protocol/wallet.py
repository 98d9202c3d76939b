"""Wallets: plugins of version 4 that receive payments, extensions of version 5.

A request that adds or removes extensions is 7369676e wallet_id:uint32 valid_until:uint32
seqno:uint32 out_actions:(Maybe ^OutList) extended:(Maybe ExtendedList) signature:bits512; each item
of the list has an action (02 adds, 03 removes an address, 04 allows or forbids signatures) and, in
a reference, the next item.

Columns and values are those of TON Center's test cases. The rule itself is not published; these
parts are inferred: which of several extensions is shown (here the first), when
``signature_allowed`` has a value (here with action 04 in the same request), and that internal
requests remain calls.
"""

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import Match, call
from tonlake.ingest.derive.action.rule import Draft, rule
from tonlake.ingest.errors import ActionUnreadable

PAYMENT_REQUEST, PAYMENT_CONFIRMED = 0x706C7567, 0xF06C7567
PAYMENT, DESTRUCT = 0x73756273, 0x64737472


@rule(
    "subscription.subscribe",
    call(PAYMENT_CONFIRMED)
    .then(call(PAYMENT, name="payment"))
    .after(call(PAYMENT_REQUEST, name="request").maybe),
)
def subscribe(match: Match) -> Draft:
    """Draft the payment of a wallet to its subscription, which pays the beneficiary."""
    block, request = match.block, match.get("request")
    columns = block.pick("source", amount="value", destination_secondary="destination")
    if request is not None:
        columns["amount"] = request.fields().coins()
    columns["destination"] = match["payment"]["destination"]
    failed = request is not None and request.failed
    return Draft("subscribe", columns, failed=failed)


@rule("subscription.unsubscribe", call(DESTRUCT).then(call(DESTRUCT, name="notice").maybe))
def unsubscribe(match: Match) -> Draft:
    """Draft the removal of a subscription by its wallet, which notifies the beneficiary."""
    columns = match.block.pick("source", destination_secondary="destination")
    columns["destination"] = match.column("notice", "destination")
    return Draft("unsubscribe", columns)


EXTERNAL_REQUEST = 0x7369676E
_ADD, _REMOVE, _ALLOW_SIGNATURES = 2, 3, 4
_TYPES = {_ADD: "wallet_v5_add_extension", _REMOVE: "wallet_v5_remove_extension"}
_SIGNATURE_BITS = 512
_SUCCESSES = frozenset((0, 1, None))


def _read_changes(body: Body) -> tuple[list[tuple[int, str | None]], bool | None]:
    """Read a request from ``out_actions`` on: its changes, and whether it allows signatures.

    Raises:
        CellUnderflow: a cell is too short.
        ActionUnreadable: an action is unknown, or is not followed by just a signature.
    """
    body.maybe_ref()
    changes: list[tuple[int, str | None]] = []
    is_allowed = None
    item = body if body.bit() else None
    while item is not None:
        kind = item.uint(8)
        if kind in _TYPES:
            changes.append((kind, item.address()))
        elif kind == _ALLOW_SIGNATURES:
            is_allowed = item.bit()
        else:
            raise ActionUnreadable(f"unknown extended action {kind} of a wallet of version 5")
        item = item.ref() if item.refs_left else None
    if body.bits_left != _SIGNATURE_BITS:
        raise ActionUnreadable("the extended actions are not followed by a signature")
    return changes, is_allowed


@rule("wallet_v5.extension", call(EXTERNAL_REQUEST))
def extension(match: Match) -> Draft | None:
    """Draft the first change of extensions; the exit code determines whether it failed."""
    message, transaction = match.block.message, match.block.transaction
    if message.source is not None:
        return None
    body = message.arguments()
    wallet_id, valid_until, seqno = body.take(32, 32, 32)
    changes, is_allowed = _read_changes(body)
    if not changes:
        return None
    kind, address = changes[0]
    data = {
        "wallet_id": wallet_id,
        "seqno": seqno,
        "valid_until": valid_until,
        "signature_allowed": is_allowed,
    }
    columns = {
        "source": message.destination,
        "destination": address,
        "wallet_v5_extension_data": data,
    }
    failed = transaction.aborted or transaction.exit_code not in _SUCCESSES
    return Draft(_TYPES[kind], columns, failed=failed)
