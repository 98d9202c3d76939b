"""Replaces account ids in a table with friendly addresses."""

from __future__ import annotations

import pyarrow as pa

from tonlake.api.errors import AddressInvalid
from tonlake.api.text.encoding import Address, name_workchain, parse_address, render_friendly

_ACCOUNT_BYTES = 32


def write_accounts(table: pa.Table, *, test_only: bool) -> pa.Table:
    """Return a table with friendly addresses instead of account ids and raw addresses.

    An account id needs a column with its workchain. Addresses are bounceable, as in
    ``ton_friendly``.
    """
    names = table.column_names
    for at, name in enumerate(names):
        partner = name_workchain(name)
        values = table.column(at).to_pylist()
        if _is_bytes(table.schema.field(at).type) and names.count(partner) == 1:
            workchains = table.column(names.index(partner)).to_pylist()
            pairs = zip(workchains, values, strict=True)
            written = [_write_pair(workchain, value, test_only) for workchain, value in pairs]
        elif pa.types.is_string(table.schema.field(at).type):
            written = [_write_raw(value, test_only) for value in values]
        else:
            continue
        table = table.set_column(at, name, pa.array(written, pa.string()))
    return table


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _write_pair(workchain: object, account: bytes | None, test_only: bool) -> str | None:  # noqa: FBT001
    if account is None:
        return None
    if not isinstance(workchain, int) or len(account) != _ACCOUNT_BYTES:
        return account.hex()
    return _write(Address(workchain, account), test_only)


def _write_raw(text: str | None, test_only: bool) -> str | None:  # noqa: FBT001
    if text is None or ":" not in text:
        return text
    try:
        return _write(parse_address(text), test_only)
    except AddressInvalid:
        return text


def _write(address: Address, test_only: bool) -> str:  # noqa: FBT001
    try:
        return render_friendly(address, bounceable=True, test_only=test_only)
    except AddressInvalid:  # the workchain has no friendly form
        return str(address)
