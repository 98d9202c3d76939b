"""Actions in words: every type has a sentence, of fields that the type has."""

import re
from importlib.resources import files
from typing import Any

import pytest

from tonlake.api.explorer.words.sentence import Phrase, load_sentences, parse_sentence, write_action
from tonlake.api.v3.resource.action import Action, load_fields

ANN, BOB, GOLD = (f"0:{digit * 64}" for digit in "ABC")


class Book:
    """Names without a lake."""

    def amount(self, amount: int | None, jetton: str | None = None) -> str:
        return f"{amount} {self.symbol(jetton)}"

    def interfaces(self, _raw: str) -> list[str]:
        return ["jetton_wallet"]

    def symbol(self, raw: str | None) -> str:
        return "TON" if raw is None else "AU"


def _action(kind: str, **details: Any) -> Action:
    return Action(
        trace_id="",
        action_id="",
        start_lt="1",
        end_lt="1",
        start_utime=1,
        end_utime=1,
        trace_end_lt="1",
        trace_end_utime=1,
        trace_mc_seqno_end=1,
        transactions=[],
        success=True,
        type=kind,
        details=details,
    )


def _words(kind: str, **details: Any) -> str:
    parts = write_action(_action(kind, **details), Book())  # type: ignore[arg-type]
    return "".join({ANN: "Ann", BOB: "Bob"}.get(part.text, part.text) for part in parts)


@pytest.mark.parametrize(
    ("phase", "exit_code", "reason"),
    [
        (0, -1, "the account has no code"),
        (0, -3, "the message has too little TON to buy gas"),
        (1, 48, "the contract failed with 48: the message has too little TON for the fees"),
        (1, 12345, "the contract failed with 12345"),
        (2, 37, "its actions failed with 37: not enough TON"),
    ],
)
def test_bounces_of_the_new_form_say_why(phase: int, exit_code: int, reason: str) -> None:
    details = {"source": ANN, "destination": BOB, "value": "5", "opcode": "0xfffffffe"}
    why = {"bounced_by_phase": phase, "exit_code": exit_code}
    shown = _words("call_contract", **details, **why)
    assert shown.startswith("Ann returned 5 TON of a bounced message to Bob because ")
    assert reason in shown
    assert _words("call_contract", **details) == "Ann returned 5 TON of a bounced message to Bob"


def test_every_type_has_a_sentence() -> None:
    assert load_fields().keys() - load_sentences().keys() == set()


@pytest.mark.parametrize("kind", sorted(load_sentences()))
def test_sentences_speak_of_fields_that_there_are(kind: str) -> None:
    text = files("tonlake.api.explorer.words").joinpath("sentences.txt").read_text()
    line = next(line for line in text.splitlines() if line.startswith(f"{kind}: "))
    named = set()
    for name, _, form in (each.partition(" ") for each in re.findall(r"\{([^}]+)\}", line)):
        named.add(name.split(".")[0])
        if form.startswith("of "):
            named.add(form.removeprefix("of ").split(".")[0])
    alike = {"extra_currency_transfer": "ton_transfer", "bounce": "call_contract"}
    listed = alike.get(kind, kind)
    known = {field.name for field in load_fields().get(listed, ())}
    composed = {"reason"} if kind == "bounce" else set()
    assert named <= known | {"asset"} | composed, named - known


def test_what_has_no_value_is_left_out() -> None:
    sent = {"source": ANN, "destination": BOB, "value": "1500000000"}
    assert _words("ton_transfer", **sent, comment=None) == "Ann sent 1500000000 TON to Bob"
    assert _words("ton_transfer", **sent, comment="hi") == "Ann sent 1500000000 TON to Bob: hi"


def test_calls_have_the_name_of_their_opcode_and_bounces_are_none() -> None:
    call = {"source": ANN, "destination": BOB, "value": "7"}
    named = _words("call_contract", **call, opcode="0x7362d09c")
    assert named == "Ann called Bob with jetton_notify and 7 TON"
    for opcode in ("0x00000002", "0x12345678"):
        sentence = _words("call_contract", **call, opcode=opcode)
        assert sentence == f"Ann called Bob with opcode {opcode} and 7 TON"
    bounced = _words("call_contract", **call, opcode="0xffffffff")
    assert bounced == "Ann returned 7 TON of a bounced message to Bob"
    assert _words("call_contract", **call, opcode=-1) == bounced


def test_what_must_have_a_value_is_said_to_be_unknown() -> None:
    assert (
        _words("jetton_transfer", amount="5", asset=GOLD)
        == "an unknown account sent 5 AU to an unknown account"
    )
    assert "None TON" in _words("ton_transfer", source=ANN)


def test_extra_currencies_are_named_by_their_number() -> None:
    sent = {"source": ANN, "destination": BOB, "value_extra_currencies": {"239": "4740", "7": "1"}}
    words = "Ann sent 4,740 of extra currency 239, 1 of extra currency 7 to Bob"
    assert _words("extra_currency_transfer", **sent, value=None) == words


def test_values_of_objects() -> None:
    swap = {
        "sender": ANN,
        "dex": "stonfi",
        "dex_incoming_transfer": {"amount": "1", "asset": None},
        "dex_outgoing_transfer": {"amount": "2", "asset": GOLD},
    }
    assert _words("jetton_swap", **swap) == "Ann swapped 1 TON for 2 AU on STON.fi"
    assert "an unknown account swapped None TON" in _words("jetton_swap")


def test_the_next_order_has_no_number_yet() -> None:
    proposed = {"source": ANN, "destination": BOB}
    following = str(2**256 - 1)
    assert _words("multisig_create_order", **proposed, order_seqno=following) == (
        "Ann proposed the next order to multisig Bob"
    )
    assert _words("multisig_create_order", **proposed, order_seqno="7") == (
        "Ann proposed order 7 to multisig Bob"
    )


def test_a_type_without_sentence_is_named() -> None:
    parts = write_action(_action("new_thing", who=ANN, whom=BOB, again=ANN, n="5"), Book())  # type: ignore[arg-type]
    assert parts == [
        Phrase("text", "new thing"),
        Phrase("text", " between "),
        Phrase("account", ANN),
        Phrase("text", ", "),
        Phrase("account", BOB),
    ]


def test_long_comments_are_cut_and_keys_are_no_accounts() -> None:
    parts = write_action(
        _action("ton_transfer", source="javascript:alert(1)", value="x", comment="y" * 9999),
        Book(),  # type: ignore[arg-type]
    )
    assert {part.kind for part in parts if part.text.startswith("javascript")} == {"text"}
    assert max(len(part.text) for part in parts) <= 300


def test_the_grammar() -> None:
    first, second = parse_sentence("a {b} c[ {d TON} e]")
    assert (first.pieces, first.optional) == (("a ", "b", " c"), False)
    assert (second.pieces, second.optional) == ((" ", "d TON", " e"), True)


def test_what_is_named_already_is_not_named_again() -> None:
    bid = {"bidder": ANN, "amount": "5", "nft_item": BOB}
    assert _words("auction_bid", **bid, auction=BOB) == "Ann bid 5 TON for Bob"
    assert _words("auction_bid", **bid, auction=GOLD).endswith(f"for Bob in auction {GOLD}")
    minted = _words("nft_mint", nft_item=BOB, owner=ANN, nft_collection=ANN)
    assert minted == "NFT Bob was minted in Ann"
