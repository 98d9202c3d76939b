"""The search: an address, hash, block, seqno or domain leads to its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from tonlake.api.chain.header import find_trace_ids
from tonlake.api.errors import AnswerNotFound, LakeUnavailable
from tonlake.api.explorer.frame import Elsewhere, Question, Shown, ask_or_say
from tonlake.api.request.params import ConversionError, parse_any_address, parse_hash
from tonlake.api.text.address import Address
from tonlake.api.v3.page.book import read_accounts
from tonlake.api.v3.route.block import BlocksQuery, get_blocks
from tonlake.api.v3.route.name import RecordsQuery, get_records

if TYPE_CHECKING:
    from tonlake.api.request.call import Call

MOST_CHARACTERS = 300
INT32_MAX = (1 << 31) - 1
WORKCHAINS = (0, -1)
"""Where an account id alone is looked for."""

_BLOCK = re.compile(r"\(?(-?[0-9]{1,10})[,:] ?([0-9a-fA-F]{16})[,:] ?([0-9]{1,10})\)?")
_SEQNO = re.compile(r"[0-9]{1,10}")
_DOMAIN = re.compile(r"[^\s/]+\.[^\s/.]+")


def show_search(question: Question) -> Shown | Elsewhere:
    """Lead to the page of what was asked for, or show that nothing was found."""
    text = question.argument("q").strip()
    if not text:
        return Elsewhere("/")
    path = find_path(question.call, text[:MOST_CHARACTERS])
    if path is not None:
        return Elsewhere(path)
    values = {"asked": text[:MOST_CHARACTERS], "gaps": question.call.reader.snapshot.ranges}
    return Shown("search.html", "Nothing found", values, status=404)


def find_path(call: Call, text: str) -> str | None:
    """Return the path of the page about a text, or None."""
    try:
        return f"/account/{quote(str(parse_any_address(text)))}"
    except ConversionError:
        pass
    if match := _BLOCK.fullmatch(text):
        return f"/block/{match[1]}:{match[2].lower()}:{int(match[3])}"
    if _SEQNO.fullmatch(text):
        return f"/block/-1:8000000000000000:{int(text)}" if int(text) <= INT32_MAX else None
    try:
        return _find_hash(call, parse_hash(text))
    except ConversionError:
        return _find_domain(call, text.lower()) if _DOMAIN.fullmatch(text) else None


def _find_hash(call: Call, digest: bytes) -> str | None:
    """Look among transactions, messages, blocks and account ids, in this order."""
    if call.reader.rows("v3/transaction_keys_by_hash", hashes=[digest]):
        return f"/transaction/{digest.hex()}"
    if find_trace_ids(call.reader, msg_hashes=[digest]):
        return f"/trace/{digest.hex()}"
    for query in (
        BlocksQuery(root_hash=digest, limit=1, offset=0),
        BlocksQuery(file_hash=digest, limit=1, offset=0),
    ):
        if path := _find_block(call, query):
            return path
    known = read_accounts(call, [Address(workchain, digest) for workchain in WORKCHAINS])
    return next((f"/account/{quote(str(address))}" for address in known), None)


def _find_block(call: Call, query: BlocksQuery) -> str | None:
    found = ask_or_say(lambda: get_blocks(call, query).blocks)
    if isinstance(found, str) or not found:
        return None
    block = found[0]
    return f"/block/{block.workchain}:{block.shard.lower()}:{block.seqno}"


def _find_domain(call: Call, domain: str) -> str | None:
    """Lead to the wallet that a domain names, or else to the domain itself, which is an NFT."""
    try:
        found = get_records(call, RecordsQuery(domain=domain, limit=1, offset=0)).records
    except (AnswerNotFound, LakeUnavailable) as error:
        call.warn(str(error))
        return None
    if not found:
        return None
    return f"/account/{quote(found[0].dns_wallet or found[0].nft_item_address)}"
