"""Token metadata: content of contracts, and content fetched from its URIs."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import Call, Query, Texts, parse_if_address
from tonlake.api.text.encoding import encode_account, render_raw
from tonlake.api.v3.layout.build import decode_content
from tonlake.api.v3.page.book import list_codes, pair_addresses, read_codes
from tonlake.api.v3.page.history import check_derived, is_derived
from tonlake.api.v3.page.operation import operation
from tonlake.api.v3.resource.answer import AddressMetadata, Metadata, TokenInfo
from tonlake.queries.reader import Row

Content: TypeAlias = dict[str, object] | None
Account = tuple[int, bytes]
"""Workchain and account id."""

_TABLE = "offchain_metadata"


class Fetched(NamedTuple):
    """The result of a fetch; if ``is_final``, it is not fetched again."""

    content: Mapping[str, object]
    is_valid: bool
    is_final: bool


NOT_FETCHED = Fetched({}, is_valid=False, is_final=False)
NOTHING_MORE = Fetched({}, is_valid=True, is_final=True)
"""For content that is entirely on-chain."""


def read_fetched(call: Call, contents: Iterable[Mapping[str, object] | None]) -> dict[str, Fetched]:
    """Return the fetched content by ``uri``; URIs that were never fetched are left out."""
    # Most lakes have no fetched metadata.
    if not call.reader.snapshot.files[_TABLE]:
        return {}
    uris = {str(content["uri"]) for content in contents if content and "uri" in content}
    if not uris:
        return {}
    rows = call.reader.rows("v3/offchain_metadata", uris=sorted(uris))
    return {
        row["uri"]: Fetched(
            decode_content(row["content"]) or {},
            is_valid=row["state"] == "fetched",
            is_final=row["state"] != "failed" or not row["is_tried_again"],
        )
        for row in rows
    }


class TokenKind(NamedTuple):
    """One kind of token contract: its name in responses, its get-method and its query."""

    name: str
    method: int
    query: str


WALLETS = TokenKind("jetton_wallets", 97026, "v3/token_wallets")
MASTERS = TokenKind("jetton_masters", 106029, "v3/token_masters")
KINDS = (
    WALLETS,
    MASTERS,
    TokenKind("nft_collections", 102491, "v3/token_collections"),
    TokenKind("nft_items", 102351, "v3/token_items"),
)
"""Method ids: get_wallet_data, get_jetton_data, get_collection_data and get_nft_data."""

_NAMED = ("name", "symbol", "description", "image")


class MetadataQuery(Query, frozen=True, kw_only=True):
    """Texts expected to be addresses."""

    mandatory = ("address",)

    address: Texts = ()


def get_metadata(call: Call, query: MetadataQuery) -> Metadata:
    """List token metadata by raw address."""
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    check_derived(call)
    return describe_tokens(call, filter(None, map(parse_if_address, query.address)))


def read_metadata(call: Call, accounts: Iterable[Account]) -> Metadata:
    """Return the metadata of these accounts; {} if the request opts out of it."""
    return {} if call.no_metadata else describe_tokens(call, accounts)


def describe_tokens(call: Call, accounts: Iterable[Account]) -> Metadata:
    """Return the metadata of these accounts and of the masters of jetton wallets among them."""
    if not is_derived(call):
        call.warn("metadata is left out: this lake has no contract detection")
        return {}
    requested = _select_tokens(call, accounts)
    found: Metadata = {}
    masters = set(requested[MASTERS])
    for row in _read_tokens(call, WALLETS, requested[WALLETS]):
        masters.add((row["jetton_workchain"], row["jetton"]))
        held: dict[str, object] = {
            "balance": str(row["balance"]),
            "owner": encode_account(row["owner_workchain"], row["owner"]),
            "jetton": render_raw(row["jetton_workchain"], row["jetton"]),
        }
        _add(found, row, (TokenInfo(type=WALLETS.name, valid=True, extra=held), True))
    tokens: list[tuple[TokenKind, Row, Content]] = []
    for kind in KINDS[1:]:
        chosen = masters if kind is MASTERS else requested[kind]
        rows = _read_tokens(call, kind, chosen)
        tokens += [(kind, row, decode_content(row["content"])) for row in rows]
    fetched = read_fetched(call, (content for _kind, _row, content in tokens))
    for kind, row, content in tokens:
        _add(found, row, _describe_token(kind, row, content, fetched))
    return found


def _add(found: Metadata, row: Row, described: tuple[TokenInfo, bool]) -> None:
    info, is_indexed = described
    address = render_raw(row["workchain"], row["account"])
    known = found.setdefault(address, AddressMetadata(is_indexed=True, token_info=[]))
    known.token_info.append(info)
    known.is_indexed = known.is_indexed and is_indexed


def _select_tokens(call: Call, accounts: Iterable[Account]) -> dict[TokenKind, set[Account]]:
    """Return the candidate accounts of each kind: those whose code has the kind's get-method."""
    requested = list(accounts)
    code_hashes = list_codes(call, requested)
    codes = read_codes(call.reader, code_hashes)
    kinds: dict[bytes | None, list[TokenKind]] = {
        code_hash: [kind for kind in KINDS if facts.methods is None or kind.method in facts.methods]
        for code_hash, facts in codes.items()
        if code_hash
    }
    selected: dict[TokenKind, set[Account]] = {kind: set() for kind in KINDS}
    for account, code_hash in zip(requested, code_hashes, strict=True):
        for kind in kinds.get(code_hash, ()):
            selected[kind].add(account)
    return selected


def _read_tokens(call: Call, kind: TokenKind, accounts: Iterable[Account]) -> list[Row]:
    listed = sorted(accounts)
    return call.reader.rows(kind.query, **pair_addresses(listed)) if listed else []


def _describe_token(
    kind: TokenKind, row: Row, content: Content, fetched: Mapping[str, Fetched]
) -> tuple[TokenInfo, bool]:
    """Return the info of a token, and whether it is complete."""
    index = row.get("item_index", UNSET)
    if content is None:
        return TokenInfo(type=kind.name, valid=False, nft_index=index), True
    there = fetched.get(str(content["uri"]), NOT_FETCHED) if "uri" in content else NOTHING_MORE
    # On-chain values take precedence (TEP-64, semi-chain content).
    joined = {**there.content, **content}
    named = {key: joined[key] for key in _NAMED if isinstance(joined.get(key), str)}
    extra = {key: value for key, value in joined.items() if key not in named}
    info = msgspec.convert({"type": kind.name, **named}, TokenInfo)
    info.nft_index = index
    info.extra = extra or UNSET
    if set(content) != {"uri"} or there.is_valid:
        info.valid = True
    elif there.is_final:
        info.valid = False
    return info, there.is_final


routes = [operation("/metadata", MetadataQuery, get_metadata)]
