"""Domains (TEP-81): record changes, renewals, releases, and the ends of their auctions."""

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import BOUNCES, Match, call
from tonlake.ingest.derive.action.protocol.nft import FILL_UP, find_item, is_domain
from tonlake.ingest.derive.action.rule import Block, Columns, rule
from tonlake.ingest.derive.body.codec import read_chunks

CHANGE_RECORD, RELEASE = 0x4EB1F0F9, 0x4ED14B65
_QUERY_BITS = 64
_RECORDS = {
    0x9FD3: ("DNSSmcAddress", "address", 8),
    0xAD01: ("DNSAdnlAddress", "bits", 8),
    0xBA93: ("DNSNextResolver", "address", 0),
    0x7473: ("DNSStorageAddress", "bits", 0),
    0x1EDA: ("DNSText", "text", 0),
}
"""Name, kind of the value and width of the flags of DNSRecord, by its tag."""


def read_record(record: Body) -> Columns:
    """Read a DNSRecord: its constructor, its value as text, and its flags.

    TL-B: dns_smc_address#9fd3, dns_adnl_address#ad01, dns_next_resolver#ba93,
    dns_storage_address#7473, dns_text#1eda.
    """
    name, kind, flag_bits = _RECORDS.get(record.uint(16), ("Unknown", "", 0))
    value = None
    if kind == "text":
        value = read_chunks(record)[0].decode(errors="replace")
    elif kind:
        value = record.address() if kind == "address" else record.hex(256)
    flags = record.uint(flag_bits) if flag_bits else None
    return {"value_schema": name, "value": value, "flags": flags}


@rule(call(RELEASE))
def release(match: Match) -> Block | None:
    """Draft the release of a domain that was not renewed: a bid starts its auction."""
    block = match.block
    item = find_item(match.interfaces, block.message.destination)
    if not is_domain(match.interfaces, item):
        return None
    body = block.arguments()
    columns = block.pick("source", "destination", "value") | {
        "asset": item.collection,
        "nft_transfer_data": {
            "query_id": body.uint(64) if body.bits_left >= _QUERY_BITS else None,
            "nft_item_index": item.item_index,
        },
    }
    return Block("dns_release", columns, failed=block.transaction.aborted)


@rule(call(FILL_UP).after(call(name="cause").apart))
def purchase(match: Match) -> Block | None:
    """Draft the end of an auction: the first call after it makes the domain pay its collection."""
    block = match.block
    item = find_item(match.interfaces, block.message.source)
    if not is_domain(match.interfaces, item):
        return None
    columns = {
        "destination": match["cause"].columns["source"],
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_transfer_data": {
            "query_id": block.arguments().uint(64),
            "nft_item_index": item.item_index,
            "is_purchase": True,
            "price": block.message.value,
            "payout_amount": block.message.value,
        },
    }
    return Block("dns_purchase", columns, failed=block.transaction.aborted)


@rule(call(CHANGE_RECORD).then(call(*BOUNCES).maybe))
def change_record(match: Match) -> Block:
    """Draft the change of a record; without a value it is a deletion, and key 0 is a renewal."""
    block = match.block
    body = block.fields()
    key = body.hex(256)
    item = find_item(match.interfaces, block.message.destination)
    columns = block.pick("source", "destination") | {"asset": item.collection}
    if not int(key, 16) and not body.refs_left:
        return Block("renew_dns", columns, failed=block.failed)
    columns["change_dns_record_data"] = {"key": key}
    if not body.refs_left:
        return Block("delete_dns", columns, failed=block.failed)
    columns["change_dns_record_data"] |= read_record(body.child())
    return Block("change_dns", columns, failed=block.failed)
