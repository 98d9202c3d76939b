"""Renders the contract tab of an account: terms, code, data, and get-methods to call."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.arguments import GetMethodParams, read_params
from tonlake.api.chain.run import read_libraries, run_get_method
from tonlake.api.errors import ApiError, RequestInvalid
from tonlake.api.explorer.contract.terms import list_terms
from tonlake.api.explorer.frame import Listed
from tonlake.api.explorer.words.assembly import disassemble
from tonlake.api.explorer.words.outcome import explain_exit_code
from tonlake.api.request.call import ConversionError, parse_any_address
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.text.stack import encode_v3
from tonlake.api.v3.route.account import AccountStatesQuery, get_account_states
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.record import find_method_ids, load_interfaces
from tonlake.ingest.derive.tvm.call import NO_CODE, method_id
from tonlake.ingest.errors import TvmError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.encoding import Address

METHODS = (
    *("get_nft_content", "royalty_params", "get_editor", "get_locked_amount"),
    *("get_domain", "get_last_fill_up_time", "get_auction_info", "get_authority_address"),
)
"""Names of get-methods besides those that identify interfaces."""

MAX_CHARACTERS = 20_000
"""Maximum length of code or data on a page; the API returns all of it."""

CODE = b""
"""Key of the account's own code, next to libraries by hash."""

_ADDR_STD = 0b100  # addr_std$10 without anycast
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]{1,64}|[0-9]{1,78})")
_CELL = re.compile(r"(cell|slice):([A-Za-z0-9+/_=-]+)")


class Result(msgspec.Struct, frozen=True):
    """The result of a get-method; ``error`` is the reason if it could not be run."""

    stack: str = ""
    exit_code: int = 0
    gas_used: int = 0
    mc_seqno: int | None = None
    error: str = ""
    meaning: str = ""
    """Meaning of the exit code; "" if unknown or successful."""


class Contract(Listed, frozen=True, kw_only=True):
    """Content of the contract tab; ``rows`` are its terms: titles with their facts.

    ``assembly`` is the disassembled code, one instruction per line.
    """

    assembly: str
    code: str
    data: str
    methods: list[str]
    asked: dict[str, str]
    result: Result | None


def show_contract(question: Question, address: Address) -> Contract:
    """Return the content of the contract tab, with the result of the requested get-method."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    interfaces = (states[0].interfaces or []) if states else []
    asked = {name: question.argument(name).strip() for name in ("method", "arguments", "block")}
    codes = _read_codes(question, states[0].code_boc) if states else {}
    methods = list_methods(codes.values())
    return Contract(
        rows=list_terms(question, address, interfaces),
        assembly=disassemble(codes[CODE], methods, codes) if codes else "",
        code=_clip(states[0].code_boc) if states else "",
        data=_clip(states[0].data_boc) if states else "",
        methods=methods,
        asked=asked,
        result=_run(question, address, asked, interfaces) if asked["method"] else None,
    )


def _read_codes(question: Question, boc: str | msgspec.UnsetType | None) -> dict[bytes, bytes]:
    """Return the code under ``CODE`` and its libraries, as far as the lake has them, by hash."""
    if not isinstance(boc, str):
        return {}
    code = base64.b64decode(boc)
    newest = question.call.reader.snapshot.ranges[-1][-1]
    _, libraries = read_libraries(question.call, newest, [code])
    return {CODE: code} | libraries


def _clip(boc: str | msgspec.UnsetType) -> str:
    text = boc if isinstance(boc, str) else ""
    return text if len(text) <= MAX_CHARACTERS else ""


def list_methods(codes: Iterable[bytes]) -> list[str]:
    """Return the known names of get-methods in ``codes`` (bags of cells)."""
    names = load_interfaces().methods | {method_id(name): name for name in METHODS}
    trees = map(parse_boc, codes)
    found = (find_method_ids(tree, tree.roots[0]) or () for tree in trees)
    return sorted({names[number] for ids in found for number in ids if number in names})


def _run(
    question: Question, address: Address, asked: dict[str, str], interfaces: Sequence[str]
) -> Result:
    """Run a get-method; invalid input becomes an error in the result, not an error page."""
    try:
        seqno = _read_block(asked["block"])
        values = {"address": str(address), "method": asked["method"], "seqno": seqno}
        params = read_params(GetMethodParams, values)
        params.check(1)
        state, outcome = run_get_method(
            question.call, params, params.method, read_stack(asked["arguments"])
        )
        stack = [encode_v3(value) for value in outcome.stack]
    except (ApiError, TvmError) as error:
        return Result(error=str(error))
    text = msgspec.json.format(msgspec.json.encode(stack), indent=2).decode()
    return Result(
        text[:MAX_CHARACTERS],
        outcome.exit_code,
        outcome.gas_used,
        state.master["seqno"],
        meaning=_explain(outcome.exit_code, interfaces),
    )


def _explain(exit_code: int, interfaces: Sequence[str]) -> str:
    if exit_code == NO_CODE:
        return "the account had no code"
    return explain_exit_code(exit_code, interfaces)


def _read_block(text: str) -> int | None:
    digits = text.replace(",", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):  # noqa: PLR2004
        raise RequestInvalid("the block is the seqno of a masterchain block")
    return int(digits)


def read_stack(text: str) -> list[Any]:
    """Convert arguments to stack entries of the API: numbers, addresses and bags of cells.

    Raises:
        RequestInvalid: an argument is none of these.
    """
    return [_read_argument(each) for each in text.replace(",", " ").split()]


def _read_argument(text: str) -> dict[str, str]:
    if _NUMBER.fullmatch(text):
        return {"type": "num", "value": text}
    if match := _CELL.fullmatch(text):
        return {"type": match[1], "value": match[2]}
    try:
        address = parse_any_address(text)
    except ConversionError as error:
        raise RequestInvalid(
            f"{text[:80]!r} is not a number, an address, cell:BASE64 or slice:BASE64"
        ) from error
    builder = CellBuilder().store_uint(_ADDR_STD, 3).store_int(address.workchain, 8)
    root = builder.store_bytes(address.account).end()
    return {"type": "slice", "value": encode_bytes(serialize_boc(builder.tree, [root]))}
