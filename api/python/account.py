"""An account of a snapshot: its transactions, balances, states and get-methods."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa

from tonlake.api.chain.account import find_state
from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.block import check_no_hole_after, find_master_at, name_coverage
from tonlake.api.chain.run import run_on_state
from tonlake.api.errors import AddressInvalid, AnswerNotFound, NotCovered, RequestInvalid
from tonlake.api.explorer.words.form import NANO_DIGITS
from tonlake.api.explorer.words.names import Names, load_labels
from tonlake.api.python.history import read_history
from tonlake.api.python.result import Result
from tonlake.api.python.source import Opened
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import (
    Address,
    WrittenAddress,
    decode_currencies,
    parse_address,
    read_argument,
    render_friendly,
)
from tonlake.api.v3.page.transaction_page import TransactionsQuery, check_covered, find_keys
from tonlake.api.v3.route.contract import DOMAIN, RecordsQuery, get_records
from tonlake.api.v3.route.token import WalletsQuery, get_wallets
from tonlake.ingest.derive.contract import stack as parsed
from tonlake.ingest.derive.contract.program import from_tvm
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.errors import BocError
from tonlake.queries.reader import Row


class MethodResult(msgspec.Struct, frozen=True):
    """The outcome of a get-method; ``stack`` has the deepest value first.

    A value is an int, None, a TvmCell or TvmSlice with its ``boc``, or a tuple or list of these.
    """

    exit_code: int
    gas_used: int
    stack: list[Any]
    test_only: bool = False

    def address(self, at: int = 0) -> str | None:
        """Return the friendly address in cell or slice ``at``, None for addr_none."""
        try:
            value = from_tvm(self.stack[at])
            start = value.slice() if isinstance(value, parsed.Cell) else value
            found = None if start is None else parsed.load_address(start.copy())
        except (parsed.Mismatch, BocError, AttributeError) as error:
            raise RequestInvalid(f"value {at} of the stack is not an address") from error
        if found is None:
            return None
        return render_friendly(found, bounceable=True, test_only=self.test_only)


PAGE_WALLETS = 1000
"""Jetton wallets read per query."""

BALANCES = pa.schema(
    [
        ("asset", pa.string()),
        ("jetton", pa.string()),
        ("amount", pa.decimal128(38, 0)),
        ("decimals", pa.int32()),
        ("balance", pa.float64()),
    ]
)


class State(msgspec.Struct, frozen=True):
    """An account after a masterchain block; ``time`` is the block's, hashes are hex.

    ``balance`` is in nanoton: 0 for an account that does not exist, whose hashes are None.
    """

    mc_seqno: int
    time: datetime
    exists: bool
    balance: int
    last_trans_lt: int
    last_trans_hash: str
    state_hash: str | None
    code_hash: str | None
    data_hash: str | None
    frozen_hash: str | None
    extra_currencies: dict[str, str]
    """Amounts by currency id."""


class Account:
    """An account as of the snapshot of a lake."""

    def __init__(self, opened: Opened, address: Address) -> None:
        """Take the snapshot and the address; use ``Lake.account`` instead."""
        self._opened = opened
        self._address = address

    @property
    def raw(self) -> str:
        """The address as ``workchain:HEX``."""
        return str(self._address)

    @property
    def address(self) -> str:
        """The friendly address; not bounceable for wallets and accounts without code."""
        with self._opened.source.naming_faults():
            return Names(self._opened.call()).friendly(self.raw)

    def __repr__(self) -> str:
        return f"<Account {self.raw}>"

    def transactions(self, limit: int = 100, offset: int = 0) -> Result:
        """Return its transactions, newest first: the columns of ``transactions``, and trace_id.

        Raises RequestInvalid if ``limit`` or ``offset`` is negative, NotCovered if none is found,
        and the lake has gaps.
        """
        if min(limit, offset) < 0:
            raise RequestInvalid(f"limit {limit} or offset {offset} is negative")
        query = TransactionsQuery(account=(self._address,), limit=limit, offset=offset)
        with self._opened.source.naming_faults():
            call = self._opened.call()
            keys = find_keys(call, query)
            if not keys:
                check_covered(call, query)
            lts = [key["lt"] for key in keys] or [0]
            found = self._opened.reader().table(
                "v3/transaction_rows",
                hashes=[key["hash"] for key in keys],
                first_lt=min(lts),
                last_lt=max(lts),
            )
        return self._show(found.sort_by([("lt", "descending")]))

    def balances(self, at: int | str | datetime | None = None) -> Result:
        """Return its balances: TON first, then jettons with a nonzero balance.

        ``at`` is a masterchain seqno, or a time (UTC without a zone; text in ISO 8601), by default
        the newest block. Columns: ``asset`` (symbol; NULL if unknown), ``jetton`` (raw address of
        the master; NULL for TON), ``amount`` in the smallest unit, ``decimals`` (NULL if unknown)
        and ``balance``, the amount in units, rounded to a float.

        Raises:
            LiteServerError, NotCovered, NotDerived: the lake cannot know the balances.
        """
        with self._opened.source.naming_faults():
            call = self._opened.call()
            seqno = find_seqno(call, at)
            state = find_state(call, self._params(seqno))
            rows = [_describe_holding("TON", None, state.balance, NANO_DIGITS)]
            rows += _list_jettons(call, self._address, seqno)
        return self._show(pa.Table.from_pylist(rows, BALANCES))

    def state(self, seqno: int | None = None) -> State:
        """Return its state after a masterchain block (the newest), or raise LiteServerError."""
        with self._opened.source.naming_faults():
            found = find_state(self._opened.call(), self._params(seqno))
        return State(
            mc_seqno=found.master["seqno"],
            time=datetime.fromtimestamp(found.master["gen_utime"], UTC),
            exists=found.state_hash is not None,
            balance=found.balance,
            last_trans_lt=found.last_trans_lt,
            last_trans_hash=found.last_trans_hash.hex(),
            state_hash=_write_hash(found.state_hash),
            code_hash=_write_hash(found.code_hash),
            data_hash=_write_hash(found.data_hash),
            frozen_hash=_write_hash(found.frozen_hash),
            extra_currencies=decode_currencies(found.extra_currencies),
        )

    def run(self, method: str | int, *arguments: object, seqno: int | None = None) -> MethodResult:
        """Run a get-method on its state after a masterchain block, by default the newest.

        Arguments are an int, None, an address as text (a slice), a bag of cells as bytes (a cell),
        or a stack value. Exit codes other than 0 and 1 are returned, not raised.

        Raises:
            TypeError, AddressInvalid: an argument is none of these.
            LiteServerError: the state, the configuration or a library is not in the lake.
            TvmMissing, TvmError: the library of the settings cannot be loaded, or the run failed.
        """
        number = method if isinstance(method, int) else method_id(method)
        stack = (*map(read_argument, arguments), number)
        with self._opened.source.naming_faults():
            call = self._opened.call()
            ended = run_on_state(call, find_state(call, self._params(seqno)), stack)
        return MethodResult(ended.exit_code, ended.gas_used, list(ended.stack), call.test_only)

    def history(
        self,
        method: str | int,
        *,
        every: timedelta | str = "1 hour",
        first: datetime | str | None = None,
        last: datetime | str | None = None,
    ) -> Result:
        """Return the results of a get-method over time, as ``Lake.get_method_history``."""
        with self._opened.source.naming_faults():
            found = read_history(self._opened, [self._address], method, every, first, last)
        return self._show(found)

    def _params(self, seqno: int | None) -> AccountParams:
        params = AccountParams(address=WrittenAddress(self._address, friendly=False), seqno=seqno)
        params.check(0)
        return params

    def _show(self, table: pa.Table) -> Result:
        return Result(table, test_only=self._opened.test_only)


def find_address(opened: Opened, name: str) -> Address:
    """Return the address in ``name``, or the wallet of a domain; raises as ``Lake.account``."""
    try:
        return parse_address(name)
    except AddressInvalid:
        if DOMAIN.fullmatch(name) is None:
            raise
    query = RecordsQuery(domain=name.lower(), limit=1, offset=0)
    records = get_records(opened.call(), query).records
    if not records or records[0].dns_wallet is None:
        raise AnswerNotFound(f"the lake has no wallet for the domain {name[:80]}")
    return parse_address(records[0].dns_wallet)


def find_seqno(call: Call, at: int | str | datetime | None) -> int | None:
    """Return the last masterchain block up to a time; a seqno unchanged, None for the newest.

    Raises NotCovered if the lake begins later, or the block is in one of its holes.
    """
    if at is None or isinstance(at, int):
        return at
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    block = find_master_at(call.reader, int(moment.timestamp()))
    if block is None:
        raise NotCovered(f"{name_coverage(call)}, and {moment.isoformat()} is before that")
    seqno = int(block["seqno"])
    check_no_hole_after(call, seqno, moment.isoformat())
    return seqno


def _list_jettons(call: Call, address: Address, seqno: int | None) -> list[Row]:
    rows: list[Row] = []
    for offset in count(0, PAGE_WALLETS):
        query = WalletsQuery(
            owner_address=(address,),
            exclude_zero_balance=True,
            mc_seqno=seqno,
            limit=PAGE_WALLETS,
            offset=offset,
        )
        found = get_wallets(call, query)
        names = Names(call, load_labels(call.settings.lake))
        names.learn(found.address_book, found.metadata)
        for wallet in found.jetton_wallets:  # symbol and decimals are in the master's metadata
            known = found.metadata.get(wallet.jetton)
            infos = [each for each in known.token_info if each.valid] if known else []
            decimals = names.digits(wallet.jetton) if infos else None
            symbol = infos[0].symbol or None if infos else None
            rows.append(_describe_holding(symbol, wallet.jetton, int(wallet.balance), decimals))
        if len(found.jetton_wallets) < PAGE_WALLETS:
            break
    return rows


def _describe_holding(
    asset: str | None, jetton: str | None, amount: int, places: int | None
) -> Row:
    balance = None if places is None else float(Decimal(amount).scaleb(-places))
    names = BALANCES.names
    return dict(zip(names, (asset, jetton, Decimal(amount), places, balance), strict=True))


def _write_hash(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
