"""tgBTC: minting and burning of bitcoins by a bridge, and its keys.

The contracts log their actions. If the messages around a log are not as expected, the log alone
makes an action whose served type ends in ``_fallback``.
"""

from collections.abc import Callable

from tonlake.ingest.derive.action.pattern import Match, anything, built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import BURN_NOTIFICATION
from tonlake.ingest.derive.action.rule import EXTRA, TRANSFER, Block, Columns, Rule, rule
from tonlake.ingest.errors import IngestError

TELEPORT = 0x3F781D24
"""Claim of a payment, which starts a mint."""
_MAX_BEFORE = 20
MINT, BURN_REQUEST, NEW_KEY = 0xE42A879B, 0x587643A2, 0x690F357A
MINT_LOG, BURN_LOG, NEW_KEY_LOG, KEY_READY_LOG = 0x77A80EF3, 0xCA444CE6, 0x27756729, 0x453443A6
PEGOUT, PEGOUT_READY = 0xBE44E7A6, 0x1A84C0E0


def _read_mint(log: Block) -> Columns:
    """Read a mint's log. TL-B: amount:Coins recipient_address:MsgAddress bitcoin_txid:uint256."""
    body = log.arguments()
    return {
        "amount": body.coins(),
        "destination": body.address(),
        EXTRA: {"btc_txid": body.uint(256).to_bytes(32, "little").hex()},  # byte order of Bitcoin
    }


def _read_burn(log: Block) -> Columns:
    """Read a burn's log. TL-B: amount:Coins sender_address:MsgAddress pegout_address:MsgAddress."""
    body = log.arguments()
    return {"amount": body.coins(), "source": body.any_address(), "destination": body.any_address()}


def _read_new_key(log: Block) -> Columns:
    """Read a new key's log. TL-B: amount:Coins new_internal_pubkey:uint256 pegout_address."""
    body = log.arguments()
    return {
        "amount": body.coins(),
        EXTRA: {"pubkey": body.hex(256)},
        "destination_secondary": body.address(),
    }


def _list_before(minting: Block) -> list[Block]:
    """Return the messages from the claim to a mint, latest first; [] if there is no claim."""
    found: list[Block] = []
    block = minting.previous
    while block is not None and len(found) < _MAX_BEFORE:
        found.append(block)
        if block.opcode == TELEPORT:
            return found
        block = block.previous
    return []


_PEGOUT = call(PEGOUT).then(call(PEGOUT_READY).maybe, built(TRANSFER).maybe).maybe
_BURNT = (call(BURN_LOG, name="log"), _PEGOUT)


@rule(call(MINT).then(call(MINT_LOG, name="log"), built("jetton_mint", name="minted")))
def mint(match: Match) -> Block | None:
    """Draft a mint of jettons for received bitcoins."""
    minted, before = match["minted"], _list_before(match.block)
    if not before:
        return None
    columns = _read_mint(match["log"]) | minted.pick("destination_secondary", "asset")
    columns |= before[-1].pick("source") | match.block.pick(source_secondary="destination")
    return Block("tgbtc_mint", columns, more=before)


@rule(
    built("jetton_burn").then(
        one_of(call(BURN_NOTIFICATION).then(*_BURNT), call(BURN_REQUEST).then(*_BURNT))
    )
)
def burn(match: Match) -> Block:
    """Draft a burn of jettons for bitcoins."""
    burnt = match.block
    columns = burnt.pick("source", "source_secondary", "asset")
    try:
        logged = _read_burn(match["log"])
    except IngestError:  # a log with other fields
        logged = {"amount": burnt["amount"], "destination": None}
    amounts = [amount for amount in (burnt["amount"], logged["amount"]) if amount]
    columns |= {"amount": min(amounts, default=0), "destination": logged["destination"]}
    return Block("tgbtc_burn", columns)


@rule(
    call(NEW_KEY)
    .then(call(NEW_KEY_LOG, name="log"), _PEGOUT)
    .after(anything().then(call(KEY_READY_LOG, name="ready")))
)
def new_key(match: Match) -> Block:
    """Draft the agreement on a new key, to which the bitcoins move."""
    columns = _read_new_key(match["log"]) | match.block.pick("source", "destination")
    columns["value"] = match["ready"].arguments().uint(64)
    return Block("tgbtc_new_key", columns)


def _read_ready(log: Block) -> Columns:
    """Read the log of a ready key. TL-B: timestamp:uint64 internal_pubkey:uint256."""
    body = log.arguments()
    return {"value": body.uint(64), EXTRA: {"pubkey": body.hex(256)}}


def _log_rule(
    name: str, log: int, kind: str, read: Callable[[Block], Columns], *senders: str
) -> Rule:
    """Return the rule of an action of which only the log is as expected."""

    def make(match: Match) -> Block:
        columns = read(match.block) | dict.fromkeys(senders, match.block["source"])
        return Block(kind, columns, served=f"{kind}_fallback")

    return Rule(f"tgbtc.{name}", call(log), make)


RULES = (
    *(mint, burn, new_key),
    _log_rule("mint_log", MINT_LOG, "tgbtc_mint", _read_mint, "source", "source_secondary"),
    _log_rule("burn_log", BURN_LOG, "tgbtc_burn", _read_burn),
    _log_rule("new_key_log", NEW_KEY_LOG, "tgbtc_new_key", _read_new_key, "source"),
    _log_rule("key_ready_log", KEY_READY_LOG, "tgbtc_dkg_log", _read_ready, "source"),
)
