"""Signs and directions of actions, from the side of each account in them."""

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tonlake.api.explorer.words.sentence import (
    BOTH,
    EXTRA_CURRENCY,
    IN,
    MOVES,
    NEITHER,
    NFT,
    OUT,
    TON,
    is_repeated,
    list_movements,
    name_direction,
)
from tonlake.api.v3.resource.action import Action

A, B, C, JETTON = (f"0:{digit * 64}" for digit in "ABCD")


def make(kind: str, details: dict[str, Any], *, success: bool = True) -> Action:
    """Return an action of which a movement reads type, success and details."""
    values: dict[str, Any] = dict.fromkeys(Action.__struct_fields__, "")
    return msgspec.structs.replace(Action(**values), type=kind, details=details, success=success)


SENT = {"source": A, "destination": B, "value": "5"}
EXTRA = SENT | {"value_extra_currencies": {"239": "8"}}
SWAP = {
    "sender": A,
    "dex_incoming_transfer": {"asset": None, "amount": "7"},
    "dex_outgoing_transfer": {"asset": JETTON, "amount": "9"},
}
BOUGHT = {"new_owner": A, "real_old_owner": B, "price": "3", "nft_item": C}


@pytest.mark.parametrize(
    ("kind", "details", "account", "direction", "moved"),
    [
        ("ton_transfer", SENT, A, OUT, [(False, TON, 5)]),
        ("ton_transfer", SENT, B, IN, [(True, TON, 5)]),
        ("ton_transfer", SENT, C, NEITHER, []),
        ("ton_transfer", SENT | {"destination": A}, A, NEITHER, []),
        ("contract_deploy", {"source": A, "destination": B}, A, OUT, [(False, TON, None)]),
        ("contract_deploy", {"source": None, "destination": B}, B, NEITHER, []),
        (
            "extra_currency_transfer",
            EXTRA,
            B,
            IN,
            [(True, TON, 5), (True, f"{EXTRA_CURRENCY} 239", 8)],
        ),
        ("jetton_swap", SWAP, A, BOTH, [(False, TON, 7), (True, JETTON, 9)]),
        ("jetton_swap", {"sender": A}, A, NEITHER, []),
        ("nft_purchase", BOUGHT, A, BOTH, [(False, TON, 3), (True, NFT, None)]),
        ("nft_purchase", BOUGHT, B, BOTH, [(True, TON, 3), (False, NFT, None)]),
        ("jetton_burn", {"owner": A, "asset": JETTON, "amount": "1"}, A, OUT, [(False, JETTON, 1)]),
        ("change_dns", {"source": A, "asset": B}, A, NEITHER, []),
    ],
)
def test_an_account_gets_and_gives(
    kind: str, details: dict[str, Any], account: str, direction: str, moved: list[Any]
) -> None:
    found = list_movements(make(kind, details), account)
    assert [(one.gained, one.asset, one.amount) for one in found] == moved
    assert name_direction(found) == direction


def with_transactions(kind: str, details: dict[str, Any], hashes: str) -> Action:
    """Return an action with transactions called by a letter each."""
    return msgspec.structs.replace(make(kind, details), transactions=list(hashes))


@pytest.mark.parametrize(
    ("kind", "hashes", "other_hashes", "value", "repeated"),
    [
        ("contract_deploy", "st", "st", "5", True),
        ("contract_deploy", "st", "su", "5", False),  # another message of the same sender
        ("contract_deploy", "st", "st", "6", False),
        ("vesting_send_message", "rsb", "st", "5", True),
        ("vesting_send_message", "rsb", "xt", "5", False),
        ("call_contract", "st", "st", "5", False),  # it states the amount
    ],
)
def test_an_amount_of_one_message_is_repeated(
    kind: str, hashes: str, other_hashes: str, value: str, *, repeated: bool
) -> None:
    details = SENT | {"vesting": A, "amount": "5"}
    one = with_transactions(kind, details, hashes)
    other = with_transactions("ton_transfer", SENT | {"value": value}, other_hashes)
    for account in (A, B):
        assert is_repeated(one, other, account) is repeated
    elsewhere = msgspec.structs.replace(other, trace_id="another")
    assert not is_repeated(one, elsewhere, A)


def test_a_failed_action_moves_nothing() -> None:
    assert list_movements(make("ton_transfer", SENT, success=False), A) == []


def test_every_field_is_one_of_its_type(shared: Path) -> None:
    fields: dict[str, set[str]] = {}
    text = (shared / "reference/action_details.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        fields.setdefault(row["action_type"], set()).add(row["details_field"].partition(".")[0])
    fields["extra_currency_transfer"] = fields["ton_transfer"]
    unknown = [
        (kind, name)
        for kind, moves in MOVES.items()
        for move in moves
        for name in (move.giver, move.taker, move.amount, move.asset)
        if name not in (None, TON, NFT, EXTRA_CURRENCY)
        and str(name).partition(".")[0] not in fields[kind]
    ]
    assert unknown == []
