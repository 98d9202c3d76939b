"""dnsResolve: resolves names by calling resolver contracts (TEP-81)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.account import find_state
from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.get_method import run_on_state
from tonlake.api.errors import LiteServerError
from tonlake.api.text.address import Address, WrittenAddress
from tonlake.api.v2.value import render_account, render_base64, render_boc
from tonlake.ingest.decode.block.currency import read_address
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import SUCCESS, method_id
from tonlake.ingest.derive.tvm.stack import TvmCell, TvmSlice
from tonlake.ingest.errors import BocError, DecodeError

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import ResolveParams
    from tonlake.ingest.decode.cell.slice import CellSlice

RESOLVE = method_id("dnsresolve")
MAX_NAME_BYTES = 126
"""TEP-81: maximum length of an encoded name."""
NEXT_RESOLVER = bytes.fromhex("19f02441ee588fdb26ee24b2568dd035c3c9206e11ab979be62e55558a1d17ff")
"""Category of the next resolver: SHA-256 of ``dns_next_resolver``."""
TEXT_TAG, RESOLVER_TAG, ADNL_TAG = 0x1EDA, 0xBA93, 0xAD01
ACCOUNT_TAG, STORAGE_TAG = 0x9FD3, 0x7473
_KEY_BITS = 256
_ADNL_MARK = b"\x2d"


class Found(msgspec.Struct, frozen=True):
    """The result of one resolver: number of resolved bytes of the name, and a cell."""

    known_bytes: int
    boc: bytes | None


def answer_resolve(call: Call, params: ResolveParams) -> dict[str, Any]:
    """dnsResolve: all records of a domain, or the next resolver once ``ttl`` is exhausted.

    Raises:
        LiteServerError: the name is invalid, or a resolver violates TEP-81.
    """
    name = encode_name(params.name)
    target, left = params.address, params.ttl
    while True:
        found = _ask(call, target, params.seqno, name)
        if found.boc is None or not found.known_bytes:
            entries: list[dict[str, Any]] = []
            break
        if found.known_bytes == len(name):
            entries = _list_records(found.boc, decode_name(name))
            break
        record = render_record(found.boc)
        following = _read_resolver(found.boc)
        if not left or following is None:
            known = decode_name(name[: found.known_bytes])
            entries = [_render_entry(known, NEXT_RESOLVER, record)]
            break
        name, left = name[found.known_bytes :], left - 1
        target = msgspec.structs.replace(params.address, address=following)
    return {"@type": "dns.resolved", "entries": entries}


def _ask(call: Call, target: WrittenAddress, seqno: int | None, name: bytes) -> Found:
    """Run dnsresolve with an encoded name and category 0, which requests all records."""
    state = find_state(call, AccountParams(address=target, seqno=seqno))
    builder = CellBuilder().store_bytes(name)
    start = TvmSlice(serialize_boc(builder.tree, [builder.end()]))
    outcome = run_on_state(call, state, (start, 0, RESOLVE))
    if outcome.exit_code not in SUCCESS:
        raise LiteServerError(f"{target.address} does not resolve: exit code {outcome.exit_code}")
    if len(outcome.stack) != 2:  # noqa: PLR2004 - see below
        raise LiteServerError(f"{target.address} does not resolve: it is not a DNS contract")
    bits, cell = outcome.stack  # (int resolved bits, cell)
    if not isinstance(bits, int) or bits % 8 or not 0 <= bits <= len(name) * 8:
        raise LiteServerError(f"{target.address} resolves {bits} bits of a name, not whole bytes")
    if cell is not None and not isinstance(cell, TvmCell):
        raise LiteServerError(f"{target.address} returns no cell")
    return Found(bits // 8, None if cell is None else cell.boc)


def encode_name(name: str) -> bytes:
    """Return the encoded name: labels from last to first, each followed by a zero byte.

    Raises:
        LiteServerError: an empty label, or a name that is too long.
    """
    if name in ("", "."):
        return bytes(len(name))
    labels = name.encode().split(b".")
    inner = b"".join(label + b"\0" for label in reversed(labels))
    if b"" in labels or b"\0" in name.encode() or len(inner) > MAX_NAME_BYTES:
        raise LiteServerError(f"{name[:80]!r} is not a name")
    return inner


def decode_name(inner: bytes) -> str:
    """Return the name of its encoded form."""
    if inner == b"\0":
        return "."
    return b".".join(reversed(inner.strip(b"\0").split(b"\0"))).decode("utf-8", "replace")


def _list_records(boc: bytes, name: str) -> list[dict[str, Any]]:
    """Return an entry for each record of a dictionary: Hashmap 256 ^DNSRecord."""
    tree = parse_boc(boc)
    try:
        return [
            _render_entry(
                name,
                category.to_bytes(32, "big"),
                render_record(serialize_boc(tree, [value.load_ref()])),
            )
            for category, value in iter_hashmap(tree, tree.roots[0], _KEY_BITS)
        ]
    except BocError as error:
        raise LiteServerError(f"the records of {name!r} are not a dictionary: {error}") from error


def _render_entry(name: str, category: bytes, entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "dns.entry",
        "name": name,
        "category": render_base64(category),
        "entry": entry,
    }


def render_record(boc: bytes) -> dict[str, Any]:
    """Return ``dns.EntryData`` of a record; ``dns.entryDataUnknown`` for other constructors.

    TL-B: dns_text#1eda, dns_next_resolver#ba93, dns_adnl_address#ad01, dns_smc_address#9fd3,
    dns_storage_address#7473.
    """
    try:
        tree = parse_boc(boc)
        start = tree.slice(tree.roots[0])
        known = _render_known(start.load_uint(16), start)
    except (BocError, DecodeError, ValueError):
        known = None
    return known or {"@type": "dns.entryDataUnknown", "bytes": render_boc(boc)}


def _render_known(tag: int, start: CellSlice) -> dict[str, Any] | None:
    if tag == TEXT_TAG:
        return {"@type": "dns.entryDataText", "text": _load_text(start)}
    if tag in (RESOLVER_TAG, ACCOUNT_TAG):
        account = render_account(*load_account(start))
        if tag == RESOLVER_TAG:
            return {"@type": "dns.entryDataNextResolver", "resolver": account}
        return {"@type": "dns.entryDataSmcAddress", "smc_address": account}
    if tag == ADNL_TAG:
        address = {"@type": "adnlAddress", "adnl_address": encode_adnl(start.load_bytes(32))}
        return {"@type": "dns.entryDataAdnlAddress", "adnl_address": address}
    if tag == STORAGE_TAG:
        bag_id = render_base64(start.load_bytes(32))
        return {"@type": "dns.entryDataStorageAddress", "bag_id": bag_id}
    return None


def _read_resolver(boc: bytes) -> Address | None:
    """Return the next resolver in a record; None if it is another kind of record."""
    try:
        tree = parse_boc(boc)
        start = tree.slice(tree.roots[0])
        if start.load_uint(16) != RESOLVER_TAG:
            return None
        workchain, account = load_account(start)
    except (BocError, DecodeError):
        return None
    return None if workchain is None or account is None else Address(workchain, account)


def load_account(start: CellSlice) -> tuple[int | None, bytes | None]:
    """Read an address from a slice; None twice if it is not ``addr_std``.

    Raises:
        DecodeError, BocError: there is no address.
    """
    value, left = start.bits()
    try:
        _kind, workchain, account, rest = read_address(value << 1, left + 1)
    except ValueError as error:
        raise DecodeError("an address ends too early") from error
    start.skip(left + 1 - rest)
    return workchain, account


def _load_text(start: CellSlice) -> str:
    """Read TL-B Text from a slice: length-prefixed chunks in a chain of cells."""
    parts = []
    for _ in range(start.load_uint(8)):
        parts.append(start.load_bytes(start.load_uint(8)))
        if start.refs_left:
            start = start.tree.slice(start.load_ref())
    return b"".join(parts).decode()


def encode_adnl(address: bytes) -> str:
    """Return an ADNL address as text: base32 with a checksum."""
    data = _ADNL_MARK + address
    data += binascii.crc_hqx(data, 0).to_bytes(2, "big")
    return base64.b32encode(data).decode().lower()[1:]
