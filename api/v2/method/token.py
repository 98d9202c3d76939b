"""getTokenData: data of a jetton, jetton wallet, NFT or collection.

Claims are verified: a jetton wallet is accepted only if its master computes its address from its
owner, an item only if its collection computes its address from its index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.account import find_state
from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.get_method import run_on_state
from tonlake.api.errors import AnswerConflict
from tonlake.api.request.call import Call
from tonlake.api.text.address import Address, WrittenAddress, render_friendly
from tonlake.api.v2.method.dns import load_account
from tonlake.api.v2.method.tokencontent import render_content, render_domain
from tonlake.api.v2.value import render_boc
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single
from tonlake.ingest.derive.tvm.call import SUCCESS, method_id
from tonlake.ingest.derive.tvm.stack import StackValue, TvmCell, TvmSlice
from tonlake.ingest.errors import BocError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable


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
        """Return the result stack of a get-method, bottom first.

        Raises:
            NoSuchToken: the method failed.
            LiteServerError, TvmError: it could not be run.
        """
        target = self.address if of is None else WrittenAddress(of, friendly=False)
        state = find_state(self.call, AccountParams(address=target, seqno=self.seqno))
        outcome = run_on_state(self.call, state, (*arguments, method_id(name)))
        if outcome.exit_code not in SUCCESS:
            raise NoSuchToken
        return list(outcome.stack)


def answer_token(call: Call, params: AccountParams) -> Found:
    """getTokenData: data of a jetton master, jetton wallet, NFT collection or NFT item.

    Raises:
        AnswerConflict: it is none of the four.
        LiteServerError, TvmError: a get-method could not be run.
    """
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
    answer = asker.ask("get_wallet_address", _write_address(owner), of=master)
    if _expect(answer, "a") != [asker.address.address]:
        raise NoSuchToken
    return {
        "contract_type": "jetton_wallet",
        "balance": str(balance),
        "owner": _render(owner),
        "jetton": _render(master),
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
            return render_domain(label, records.boc if isinstance(records, TvmCell) else None)
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

    Raises:
        NoSuchToken: a type does not match.
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


def _write_address(address: Address) -> TvmSlice:
    builder = CellBuilder().store_uint(0b100, 3).store_int(address.workchain, 8)
    return TvmSlice(serialize_boc(builder.tree, [builder.store_bytes(address.account).end()]))


def _optional(name: str, address: Address | None) -> Found:
    return {} if address is None else {name: _render(address)}


def _render(address: Address) -> str:
    return render_friendly(address, bounceable=True, test_only=False)


def _echo(written: WrittenAddress) -> str:
    """Return the address in its requested form: raw in upper case, or friendly with its flags."""
    if not written.friendly:
        return f"{written.address.workchain}:{written.address.account.hex().upper()}"
    return render_friendly(
        written.address, bounceable=written.bounceable, test_only=written.test_only
    )
