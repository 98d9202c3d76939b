"""Tokens and domains: getTokenData and dnsResolve (TEP-62, TEP-64, TEP-74, TEP-81).

Claims are verified: a jetton wallet is accepted only if its master computes its address from its
owner, an item only if its collection computes its address from its index.
"""

import base64
import binascii
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from tonlake.api.chain.account import find_state
from tonlake.api.chain.arguments import AccountParams, ResolveParams
from tonlake.api.chain.run import run_on_state
from tonlake.api.errors import AnswerConflict, LiteServerError, RequestInvalid
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, WrittenAddress, read_argument, render_friendly
from tonlake.api.v2.value import render_account, render_address, render_base64, render_boc
from tonlake.ingest.decode.block.message import read_address
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single
from tonlake.ingest.derive.body.codec import read_chunks, read_words
from tonlake.ingest.derive.contract.standard import OFF_CHAIN, read_content
from tonlake.ingest.derive.tvm.call import SUCCESS, StackValue, TvmCell, TvmSlice, method_id
from tonlake.ingest.errors import BocError, DecodeError

RESOLVE = method_id("dnsresolve")
MAX_NAME_BYTES = 126
"""TEP-81: maximum length of an encoded name."""
_KEY_BITS = 256
_ADNL_MARK = b"\x2d"


def answer_resolve(call: Call, params: ResolveParams) -> dict[str, Any]:
    """dnsResolve: all records of a domain, or the next resolver once ``ttl`` is exhausted."""
    name = encode_name(params.name)
    target, left = params.address, params.ttl
    while True:
        size, boc = _ask_resolver(call, target, params.seqno, name)
        if boc is None or not size:
            entries: list[dict[str, Any]] = []
            break
        if size == len(name):
            entries = _list_entries(boc, decode_name(name))
            break
        kind, value = _read_record(boc) or ("", (None, None))
        if not left or kind != "dns_next_resolver" or value[1] is None:
            entries = [_render_entry(decode_name(name[:size]), NEXT_RESOLVER, render_record(boc))]
            break
        name, left = name[size:], left - 1
        target = msgspec.structs.replace(params.address, address=Address(*value))
    return {"@type": "dns.resolved", "entries": entries}


def _ask_resolver(
    call: Call, target: WrittenAddress, seqno: int | None, name: bytes
) -> tuple[int, bytes | None]:
    """Ask for all records of an encoded name; return the number of resolved bytes, and a cell."""
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
    return bits // 8, None if cell is None else cell.boc


def encode_name(name: str) -> bytes:
    """Return the encoded name: labels from last to first, each followed by a zero byte."""
    if name in ("", "."):
        return bytes(len(name))
    labels = name.encode().split(b".")
    inner = b"".join(label + b"\0" for label in reversed(labels))
    if b"" in labels or b"\0" in name.encode() or len(inner) > MAX_NAME_BYTES:
        raise RequestInvalid(f"name {name[:80]!r} is not a domain")
    return inner


def decode_name(inner: bytes) -> str:
    """Return the name of its encoded form."""
    if inner == b"\0":
        return "."
    return b".".join(reversed(inner.strip(b"\0").split(b"\0"))).decode("utf-8", "replace")


def _iter_records(boc: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield category and bag of each record of a dictionary: Hashmap 256 ^DNSRecord."""
    tree = parse_boc(boc)
    for key, value in iter_hashmap(tree, tree.roots[0], _KEY_BITS):
        yield key.to_bytes(32, "big"), serialize_boc(tree, [value.load_ref()])


def _list_entries(boc: bytes, name: str) -> list[dict[str, Any]]:
    """Return an entry for each record of a dictionary."""
    try:
        return [
            _render_entry(name, key, render_record(record)) for key, record in _iter_records(boc)
        ]
    except BocError as error:
        raise LiteServerError(f"the records of {name!r} are not a dictionary: {error}") from error


def _render_entry(name: str, category: bytes, entry: dict[str, Any]) -> dict[str, Any]:
    return {"@type": "dns.entry", "name": name, "category": render_base64(category), "entry": entry}


def render_record(boc: bytes) -> dict[str, Any]:
    """Return ``dns.EntryData`` of a record; ``dns.entryDataUnknown`` for other constructors."""
    match _read_record(boc):
        case "dns_text", text:
            return {"@type": "dns.entryDataText", "text": text}
        case "dns_next_resolver", account:
            return {"@type": "dns.entryDataNextResolver", "resolver": render_account(*account)}
        case "dns_smc_address", account:
            return {"@type": "dns.entryDataSmcAddress", "smc_address": render_account(*account)}
        case "dns_adnl_address", key:
            address = {"@type": "adnlAddress", "adnl_address": encode_adnl(key)}
            return {"@type": "dns.entryDataAdnlAddress", "adnl_address": address}
        case "dns_storage_address", bag_id:
            return {"@type": "dns.entryDataStorageAddress", "bag_id": render_base64(bag_id)}
    return {"@type": "dns.entryDataUnknown", "bytes": render_boc(boc)}


def _read_record(boc: bytes) -> tuple[str, Any] | None:
    """Return the constructor of a record and its value; None if it is unknown or damaged."""
    try:
        tree = parse_boc(boc)
        start = tree.slice(tree.roots[0])
        name, load = _RECORDS[start.load_uint(16)]
        return name, load(start)
    except (BocError, DecodeError, ValueError, KeyError):
        return None


def load_account(start: CellSlice) -> tuple[int | None, bytes | None]:
    """Read an address from a slice; None twice if it is not ``addr_std``."""
    _kind, workchain, account = read_address(start)
    return workchain, account


_RECORDS: dict[int, tuple[str, Callable[[CellSlice], Any]]] = {
    0x1EDA: ("dns_text", lambda start: read_chunks(start)[0].decode()),
    0xBA93: ("dns_next_resolver", load_account),
    0xAD01: ("dns_adnl_address", lambda start: start.load_bytes(32)),
    0x9FD3: ("dns_smc_address", load_account),
    0x7473: ("dns_storage_address", lambda start: start.load_bytes(32)),
}
"""TL-B constructors of DNSRecord by tag, with the readers of their values."""


def encode_adnl(address: bytes) -> str:
    """Return an ADNL address as text: base32 with a checksum."""
    data = _ADNL_MARK + address
    data += binascii.crc_hqx(data, 0).to_bytes(2, "big")
    return base64.b32encode(data).decode().lower()[1:]


ZONE = ".ton"
NEXT_RESOLVER = sha256(b"dns_next_resolver").digest()
_CATEGORIES = {
    sha256(name.encode()).digest(): name
    for name in ("dns_next_resolver", "wallet", "site", "storage")
}
"""TEP-81: categories are SHA-256 of their names."""


def render_content(boc: bytes) -> dict[str, Any]:
    """Return token content (TEP-64): an off-chain URI, or the on-chain values."""
    tree = parse_boc(boc)
    content = read_content(tree, tree.roots[0])
    if content is None:
        return {"type": "onchain", "data": {}}
    start = tree.slice(tree.roots[0])
    if start.load_uint(8) == OFF_CHAIN:
        return {"type": "offchain", "data": content["uri"]}
    return {"type": "onchain", "data": content}


def _render_records(boc: bytes) -> dict[str, Any]:
    records = ((key, _render_token_record(record)) for key, record in _iter_records(boc))
    return {_CATEGORIES.get(key, key.hex()): one for key, one in records if one is not None}


def _render_token_record(boc: bytes) -> dict[str, Any] | None:
    """Return a DNSRecord with its TL-B names; None for text and other constructors."""
    match _read_record(boc):
        case ("dns_next_resolver" | "dns_smc_address") as name, (workchain, bytes(account)):
            address = {"workchain_id": workchain, "address": account.hex().upper()}
            field = "resolver" if name == "dns_next_resolver" else "smc_addr"
            return {"@type": name, field: {"@type": "addr_std", **address}}
        case "dns_adnl_address" as name, bytes(key):
            return {"@type": name, "adnl_addr": key.hex().upper()}
        case "dns_storage_address" as name, bytes(key):
            return {"@type": name, "bag_id": key.hex().upper()}
    return None


_ITSELF = TvmSlice(serialize_single(bytes((0, 2, 0))))
"""One zero byte: the encoded name of the resolver itself."""
Found = dict[str, Any]


class NoSuchToken(Exception):
    """The contract does not respond like a token of this kind."""


class Asker(msgspec.Struct, frozen=True):
    """Runs get-methods, all as of the same masterchain block."""

    call: Call
    address: WrittenAddress
    seqno: int | None

    def ask(self, name: str, *arguments: StackValue, of: Address | None = None) -> list[Any]:
        """Return the result stack of a get-method, bottom first."""
        target = self.address if of is None else WrittenAddress(of, friendly=False)
        state = find_state(self.call, AccountParams(address=target, seqno=self.seqno))
        outcome = run_on_state(self.call, state, (*arguments, method_id(name)))
        if outcome.exit_code not in SUCCESS:
            raise NoSuchToken
        return list(outcome.stack)


def answer_token(call: Call, params: AccountParams) -> Found:
    """getTokenData: data of a jetton master, jetton wallet, NFT collection or NFT item."""
    asker = Asker(call, params.address, params.seqno)
    for kind, read in _READERS.items():
        try:
            found = read(asker)
        except (NoSuchToken, BocError, DecodeError, UnicodeDecodeError):
            continue
        tag = f"ext.tokens.{kind}Data"
        return {"@type": tag, "address": _echo(params.address), **found}
    raise AnswerConflict(f"Smart contract {_echo(params.address)} is not Jetton or NFT")


def _read_master(asker: Asker) -> Found:
    supply, mintable, admin, content, code = _expect(asker.ask("get_jetton_data"), "iiacc")
    return {
        "contract_type": "jetton_master",
        "total_supply": str(supply),
        "mintable": bool(mintable),
        **_optional("admin_address", admin),
        "jetton_content": render_content(content),
        "jetton_wallet_code": render_boc(code),
    }


def _read_wallet(asker: Asker) -> Found:
    balance, owner, master, code = _expect(asker.ask("get_wallet_data"), "iaac")
    if owner is None or master is None:
        raise NoSuchToken
    answer = asker.ask("get_wallet_address", read_argument(str(owner)), of=master)
    if _expect(answer, "a") != [asker.address.address]:
        raise NoSuchToken
    return {
        "contract_type": "jetton_wallet",
        "balance": str(balance),
        "owner": render_address(owner.workchain, owner.account),
        "jetton": render_address(master.workchain, master.account),
        "jetton_wallet_code": render_boc(code),
        **_read_claim(asker),
    }


def _read_claim(asker: Asker) -> Found:
    """Return whether a wallet of a mintless jetton claimed its share; {} for other wallets."""
    try:
        (claimed,) = _expect(asker.ask("is_claimed"), "i")
    except NoSuchToken:
        return {}
    return {"mintless_is_claimed": bool(claimed)}


def _read_collection(asker: Asker) -> Found:
    index, content, owner = _expect(asker.ask("get_collection_data"), "ica")
    return {
        "contract_type": "nft_collection",
        "next_item_index": str(index),
        **_optional("owner_address", owner),
        "collection_content": render_content(content),
    }


def _read_item(asker: Asker) -> Found:
    answer = _expect(asker.ask("get_nft_data"), "iiaac")
    init, index, collection, owner, content = answer
    if collection is not None:
        address = asker.ask("get_nft_address_by_index", index, of=collection)
        if _expect(address, "a") != [asker.address.address]:
            raise NoSuchToken
    return {
        "contract_type": "nft_item",
        "init": bool(init),
        "index": str(index),
        **_optional("collection_address", collection),
        **_optional("owner_address", owner),
        "content": _read_item_content(asker, index, collection, content),
    }


def _read_item_content(
    asker: Asker, index: int, collection: Address | None, content: bytes
) -> Found:
    """Return the content of an item: its domain and records, or its complete TEP-64 content."""
    try:
        (label,) = asker.ask("get_domain")
        _known, records = asker.ask("dnsresolve", _ITSELF, 0)
    except (NoSuchToken, ValueError):
        pass
    else:
        if isinstance(label, TvmSlice):
            tree = parse_boc(label.boc)
            name = read_words(tree.slice(tree.roots[0])).decode()
            data = _render_records(records.boc) if isinstance(records, TvmCell) else {}
            return {"domain": name + ZONE, "data": data}
    if collection is not None:
        joined = asker.ask("get_nft_content", index, TvmCell(content), of=collection)
        (content,) = _expect(joined, "c")
    return render_content(content)


_READERS: dict[str, Callable[[Asker], Found]] = {
    "jettonMaster": _read_master,
    "jettonWallet": _read_wallet,
    "nftCollection": _read_collection,
    "nftItem": _read_item,
}
"""Readers in the order in which they are tried."""


def _expect(stack: list[Any], kinds: str) -> list[Any]:
    """Return the first values of a stack, checked against their types.

    ``i`` is an integer, ``c`` the bag of a cell, ``a`` an address in a slice; None for addr_none.
    """
    if len(stack) < len(kinds):
        raise NoSuchToken
    return [_read_value(value, kind) for value, kind in zip(stack, kinds, strict=False)]


def _read_value(value: StackValue, kind: str) -> Any:  # noqa: ANN401 - one of three kinds
    if kind == "i" and isinstance(value, int):
        return value
    if kind == "c" and isinstance(value, TvmCell):
        return value.boc
    if kind == "a" and isinstance(value, TvmSlice | TvmCell):
        tree = parse_boc(value.boc)
        workchain, account = load_account(tree.slice(tree.roots[0]))
        return None if workchain is None or account is None else Address(workchain, account)
    raise NoSuchToken


def _optional(name: str, address: Address | None) -> Found:
    return {} if address is None else {name: render_address(address.workchain, address.account)}


def _echo(written: WrittenAddress) -> str:
    """Return the address in its requested form: raw in upper case, or friendly with its flags."""
    if not written.friendly:
        return f"{written.address.workchain}:{written.address.account.hex().upper()}"
    return render_friendly(
        written.address, bounceable=written.bounceable, test_only=written.test_only
    )
