"""Search: redirects to the page of an address, hash, block, time or domain, or lists results.

Names of tokens, domains and labels are matched as text, hex digits against prefixes of hashes and
addresses.
"""

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from tonlake.api.chain.block import MASTERCHAIN_SHARD, find_block_at, find_trace_ids
from tonlake.api.errors import AnswerNotFound, LakeUnavailable, LiteServerError
from tonlake.api.explorer.frame import PageRequest, Redirect, Shown, ask_or_say
from tonlake.api.request.call import Call, ConversionError, parse_hash, parse_if_address
from tonlake.api.text.encoding import Address, encode_shard, render_raw
from tonlake.api.v3.page.book import read_accounts
from tonlake.api.v3.route.block import BlocksQuery, get_blocks
from tonlake.api.v3.route.contract import DOMAIN, RecordsQuery, get_records
from tonlake.lake.account import MASTERCHAIN, read_block_id

MAX_CHARACTERS = 300
INT32_MAX = (1 << 31) - 1
WORKCHAINS = (0, -1)
"""Workchains in which a bare account id is looked up."""

_PAYMENT_LINK = re.compile(r"(?:ton|tc)://transfer/([^/?#]+).*", re.IGNORECASE)
"""A link that asks a wallet to pay to an address."""

_SEQNO = re.compile(r"[0-9]{1,10}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?( ?Z| UTC)?")
"""A time in UTC, as pages show it or as ISO 8601."""

_PARTIAL = re.compile(r"(?:0x)?([0-9a-f]{6,63})(?:(?:…|\.{2,3})([0-9a-f]{0,63}))?")
"""A hash prefix; after dots its suffix, as pages abbreviate hashes."""

_PARTIAL_RAW = re.compile(r"(-?[0-9]{1,3}):([0-9a-fA-F]{6,63})")
_PARTIAL_FRIENDLY = re.compile(
    r"([EUk0][Qf][A-Za-z0-9_-]{3,45})(?:(?:…|\.{2,3})([A-Za-z0-9_-]{0,45}))?"
)
"""Address prefixes; after dots the suffix of a friendly address, as pages abbreviate them."""

FRIENDLY_CHARACTERS = 48
BOUNCEABLE, NON_BOUNCEABLE, TEST_ONLY = 0x11, 0x40, 0x80
"""The tag of a bounceable friendly address, and the bits of the other flags (TEP-2)."""

HASH_DIGITS = 64
MAX_RESULTS = 20
MAX_NAME_CHARACTERS = 60
PARTIAL_MC_BLOCKS = 100_000
"""Newest masterchain blocks searched for hash prefixes: no index is sorted by hash."""

SIMILAR = 3
"""``likeness`` of a name with a similar spelling (explorer/named.sql)."""


_KINDS = {
    "jetton": "Jetton",
    "collection": "NFT collection",
    "domain": "Domain",
    "transaction": "Transaction",
    "message": "Message",
    "block": "Block",
    "account": "Account",
    "label": "Account",
}
_PAGES = {"jetton": "jetton", "label": "account"}
"""Path prefixes by kind; "nft" for the other kinds."""


class FoundPage(msgspec.Struct, frozen=True):
    """A search result: kind as text, path of its page, and its name."""

    kind: str
    path: str
    text: str
    address: str = ""


def show_search(question: PageRequest) -> Shown | Redirect:
    """Redirect to the page that ``q`` identifies, or list the matches; status 404 without any."""
    text = question.argument("q").strip()[:MAX_CHARACTERS]
    if not text:
        return Redirect("/")
    path = find_path(question.call, text)
    if path is not None:
        return Redirect(path)
    hashes = find_partial(question, text.lower()) or find_partial_address(question, text)
    matches, similar = find_names(question, text)
    if len(hashes) == 1 and not matches:
        return Redirect(hashes[0].path)
    results = [*matches, *hashes]
    values = {
        "asked": text,
        "results": results,
        "similar": similar,
        "gaps": question.call.reader.snapshot.ranges,
        "searched_from": find_first_searched(question.call),
    }
    title = f"Results for {text}" if results else "Nothing found"
    return Shown("search.html", title, values, status=200 if results else 404)


def find_names(question: PageRequest, text: str) -> tuple[list[FoundPage], list[FoundPage]]:
    """Return matching and similar names; labels count only if their account is in the lake."""
    rows = question.call.reader.rows("explorer/named", text=text, limit=MAX_RESULTS)
    labelled = {Address(row["workchain"], row["account"]) for row in rows if row["kind"] == "label"}
    unknown = labelled - read_accounts(question.call, labelled).keys()
    rows = [row for row in rows if Address(row["workchain"], row["account"]) not in unknown]
    matches = [_name_result(question, row) for row in rows if row["likeness"] < SIMILAR]
    similar = [_name_result(question, row) for row in rows if row["likeness"] == SIMILAR]
    return matches, similar


def _name_result(question: PageRequest, row: Mapping[str, Any]) -> FoundPage:
    friendly = question.names.friendly(render_raw(row["workchain"], row["account"]))
    name = (row["name"] or "").strip()[:MAX_NAME_CHARACTERS]
    symbol = (row["symbol"] or "").strip()[:MAX_NAME_CHARACTERS]
    text = f"{name} ({symbol})" if name and symbol and name != symbol else name or symbol
    page = _PAGES.get(row["kind"], "nft")
    return FoundPage(_KINDS[row["kind"]], f"/{page}/{quote(friendly)}", text, friendly)


def find_partial(question: PageRequest, text: str) -> list[FoundPage]:
    """Return transactions, blocks and accounts by hash prefix; [] if it is too short."""
    match = _PARTIAL.fullmatch(text)
    if match is None:
        return []
    rows = question.call.reader.rows(
        "explorer/by_partial_hash",
        low=bytes.fromhex(match[1].ljust(HASH_DIGITS, "0")),
        high=bytes.fromhex(match[1].ljust(HASH_DIGITS, "f")),
        suffix=match[2] or "",
        first=find_first_searched(question.call),
        limit=MAX_RESULTS,
    )
    return [_hash_result(question, row) for row in rows]


def _hash_result(question: PageRequest, row: Mapping[str, Any]) -> FoundPage:
    kind, digits = row["kind"], row["hash"].hex()
    if kind == "account":
        friendly = question.names.friendly(render_raw(row["workchain"], row["hash"]))
        return FoundPage(_KINDS[kind], f"/account/{quote(friendly)}", digits, friendly)
    if kind == "block":
        block = f"{row['workchain']}:{encode_shard(row['shard']).lower()}:{row['seqno']}"
        return FoundPage(_KINDS[kind], f"/block/{block}", f"{block}, {digits}")
    page = "transaction" if kind == "transaction" else "trace"
    return FoundPage(_KINDS[kind], f"/{page}/{digits}", digits)


def find_partial_address(question: PageRequest, text: str) -> list[FoundPage]:
    """Return the accounts whose raw or friendly address matches an abbreviated address."""
    tag, end = BOUNCEABLE, ""
    if match := _PARTIAL_RAW.fullmatch(text):
        workchain = int(match[1])
        low, high = (bytes.fromhex(match[2].ljust(HASH_DIGITS, digit)) for digit in "0f")
    elif match := _PARTIAL_FRIENDLY.fullmatch(text):
        least, most = (
            base64.urlsafe_b64decode(match[1].ljust(FRIENDLY_CHARACTERS, letter)) for letter in "A_"
        )
        tag, end = least[0], match[2] or ""
        workchain = int.from_bytes(least[1:2], signed=True)
        low, high = least[2:34], most[2:34]
    else:
        return []
    rows = question.call.reader.rows(
        "explorer/accounts_between",
        workchain=workchain,
        low=low,
        high=high,
        first=find_first_searched(question.call),
        suffix=end,
        bounceable=not tag & NON_BOUNCEABLE,
        test_only=bool(tag & TEST_ONLY),
        limit=MAX_RESULTS,
    )
    found = (Address(row["workchain"], row["account"]) for row in rows)
    shown = [question.names.friendly(str(each)) for each in found]
    return [FoundPage("Account", f"/account/{quote(each)}", "", each) for each in shown]


def find_first_searched(call: Call) -> int:
    """Return the oldest masterchain block that is searched for hash prefixes."""
    return max(0, (call.reader.snapshot.last_mc_seqno or 0) - PARTIAL_MC_BLOCKS + 1)


def find_path(call: Call, text: str) -> str | None:
    """Return the path of the page that ``text`` identifies, or None."""
    if link := _PAYMENT_LINK.fullmatch(text):
        text = unquote(link[1])
    if address := parse_if_address(text):
        return f"/account/{quote(str(address))}"
    if block := read_block_id(text):
        workchain, shard, seqno = block
        return f"/block/{workchain}:{encode_shard(shard).lower():0>16}:{seqno}"
    if _SEQNO.fullmatch(text):
        return f"/block/-1:8000000000000000:{int(text)}" if int(text) <= INT32_MAX else None
    if _TIME.fullmatch(text):
        return _find_moment(call, text)
    try:
        return _find_hash(call, parse_hash(text))
    except ConversionError:
        return _find_domain(call, text.lower()) if DOMAIN.fullmatch(text) else None


def _find_moment(call: Call, text: str) -> str | None:
    """Return the path of the first masterchain block at or after a time."""
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z").removesuffix("UTC").strip())
        utime = int(moment.replace(tzinfo=UTC).timestamp())
        block = find_block_at(call, MASTERCHAIN, MASTERCHAIN_SHARD, utime=utime)
    except (ValueError, LiteServerError):
        return None
    return f"/block/{MASTERCHAIN}:{encode_shard(MASTERCHAIN_SHARD).lower()}:{block['seqno']}"


def _find_hash(call: Call, digest: bytes) -> str | None:
    """Look up transactions, messages, blocks and account ids, in this order."""
    if call.reader.rows("v3/transaction_keys_by_hash", hashes=[digest]):
        return f"/transaction/{digest.hex()}"
    if find_trace_ids(call.reader, msg_hashes=[digest]):
        return f"/trace/{digest.hex()}"
    for query in (
        BlocksQuery(root_hash=digest, limit=1, offset=0),
        BlocksQuery(file_hash=digest, limit=1, offset=0),
    ):
        found = ask_or_say(partial(get_blocks, call, query))
        for block in () if isinstance(found, str) else found.blocks:
            return f"/block/{block.workchain}:{block.shard.lower()}:{block.seqno}"
    known = read_accounts(call, [Address(workchain, digest) for workchain in WORKCHAINS])
    return next((f"/account/{quote(str(address))}" for address in known), None)


def _find_domain(call: Call, domain: str) -> str | None:
    """Return the path of the wallet that a domain points to, or else of the domain's NFT."""
    try:
        found = get_records(call, RecordsQuery(domain=domain, limit=1, offset=0)).records
    except (AnswerNotFound, LakeUnavailable) as error:
        call.warn(str(error))
        return None
    if not found:
        return None
    return f"/account/{quote(found[0].dns_wallet or found[0].nft_item_address)}"
