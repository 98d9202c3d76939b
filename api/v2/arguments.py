"""Parameters of the methods of version 2, and the rules between them."""

from __future__ import annotations

from tonlake.api.chain.arguments import (
    AccountParams,
    Params,
    check_natural,
    refuse_unless,
)
from tonlake.api.chain.param import (
    AccountAddress,
    Bag,
    CellObject,
    Flag,
    Hash,
    Hashes,
    Int32,
    Int64,
    OptionalAccountHash,
    OptionalHash,
    OptionalInt32,
    OptionalInt64,
    OptionalPositive,
    Positive,
    Text,
)

MAX_COUNT = 10_000
"""Limit of transactions in a page of a block."""


class NoParams(Params, frozen=True, kw_only=True):
    """No parameters."""


class TextParams(Params, frozen=True, kw_only=True):
    """An address to convert to other forms."""

    address: AccountAddress


class HashParams(Params, frozen=True, kw_only=True):
    """A hash to convert to other forms."""

    hash: Hash


class ProofParams(Params, frozen=True, kw_only=True):
    """A shard block, and the masterchain block that the reader trusts."""

    workchain: Int32
    shard: Int64
    seqno: Positive
    from_seqno: OptionalInt32 = None

    def check(self, max_limit: int, /) -> None:
        """Require non-negative seqnos."""
        super().check(max_limit)
        check_natural(self.from_seqno, "from_seqno")


class HistoryParams(Params, frozen=True, kw_only=True):
    """Transactions of an account, backwards from one of them, down to ``to_lt`` exclusive."""

    address: AccountAddress
    limit: OptionalPositive = None
    lt: OptionalInt64 = None
    hash: OptionalHash = None
    to_lt: Int64 = 0
    archival: Flag = False

    @property
    def start_lt(self) -> int | None:
        """The logical time to begin at; None begins at the newest transaction."""
        return self.lt

    def check(self, max_limit: int, /) -> None:
        """Require a limit within bounds, and lt and hash together."""
        _check_bounds(self.limit, max_limit, "limit")
        _check_pair(self.start_lt, self.hash, "lt and hash", "lt")


class HistoryParamsZero(HistoryParams, frozen=True, kw_only=True):
    """The same, but ``lt`` 0 means no ``lt``."""

    @property
    def start_lt(self) -> int | None:
        """The logical time to begin at; None begins at the newest transaction."""
        return self.lt or None


class MasterParams(Params, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Positive


class BlockParams(Params, frozen=True, kw_only=True):
    """A block, by seqno or, with both hashes, by its full identity."""

    workchain: Int32
    shard: Int64
    seqno: Positive
    root_hash: OptionalHash = None
    file_hash: OptionalHash = None


class BlockPageParams(BlockParams, frozen=True, kw_only=True):
    """Transactions of a block, optionally after one of them."""

    after_lt: OptionalInt64 = None
    after_hash: OptionalAccountHash = None
    count: OptionalPositive = None

    def check(self, max_limit: int, /) -> None:
        """Require a count within bounds, and after_lt and after_hash together."""
        super().check(max_limit)
        _check_bounds(self.count, MAX_COUNT, "count")
        _check_pair(self.after_lt, self.after_hash, "after_lt and after_hash", "after_lt")


class LookupParams(Params, frozen=True, kw_only=True):
    """A block by seqno, or the first one at or after a logical time or a time."""

    workchain: Int32
    shard: Int64
    seqno: OptionalPositive = None
    lt: OptionalInt64 = None
    unixtime: OptionalInt64 = None

    def check(self, max_limit: int, /) -> None:
        """Require exactly one of the three."""
        present = [name for name in ("seqno", "lt", "unixtime") if getattr(self, name) is not None]
        refuse_unless(len(present) == 1, "exactly one of seqno, lt, unixtime should be specified")
        super().check(max_limit)
        check_natural(self.lt, "lt")
        check_natural(self.unixtime, "unixtime")


class ConfigParams(Params, frozen=True, kw_only=True):
    """The entire configuration as of a masterchain block."""

    seqno: OptionalPositive = None


class ConfigParamParams(ConfigParams, frozen=True, kw_only=True):
    """One parameter of the configuration, under either of its two names."""

    param: OptionalInt32 = None
    config_id: OptionalInt32 = None

    @property
    def number(self) -> int:
        """The number of the parameter."""
        return (self.config_id if self.param is None else self.param) or 0

    def check(self, max_limit: int, /) -> None:
        """Require exactly one of the names."""
        super().check(max_limit)
        refuse_unless(
            (self.param is None) != (self.config_id is None),
            "only one of config_id or param should be specified",
        )
        check_natural(self.number, "param")


class LibraryParams(Params, frozen=True, kw_only=True):
    """Public libraries by the hashes of their cells."""

    libraries: Hashes


class LocateParams(Params, frozen=True, kw_only=True):
    """A message between two accounts."""

    source: AccountAddress
    destination: AccountAddress
    created_lt: Int64

    def check(self, _max_limit: int, /) -> None:
        """Require a non-negative logical time."""
        check_natural(self.created_lt, "created_lt")


def _check_bounds(number: int | None, most: int, name: str) -> None:
    if number is not None:
        refuse_unless(number > 0, f"{name} should be positive")
        refuse_unless(number <= most, f"{name} should be less or equal {most}")


def _check_pair(lt: int | None, hash_: bytes | None, names: str, lt_name: str) -> None:
    refuse_unless((lt is None) == (hash_ is None), f"{names} should be used together")
    check_natural(lt, lt_name)


class BagParams(Params, frozen=True, kw_only=True):
    """A message to send, as a bag of cells."""

    boc: Bag

    def check(self, _max_limit: int, /) -> None:
        """Require a bag that is not empty."""
        refuse_unless(bool(self.boc), "empty boc")


class CellParams(Params, frozen=True, kw_only=True):
    """A message to send, as a JSON object with data and references."""

    cell: CellObject


class ResolveParams(AccountParams, frozen=True, kw_only=True):
    """A name, the resolver to start from, and how many further resolvers may be called."""

    name: Text = ""
    category: OptionalHash = None
    ttl: Int32 = 0

    def check(self, max_limit: int, /) -> None:
        """Require non-negative numbers."""
        super().check(max_limit)
        check_natural(self.ttl, "ttl")
