"""Evaluates get-methods over time, and runs SQL over them, message bodies and tables of users.

Rows that runs on many states share are cached, and read in bulk.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from importlib.resources import files
from typing import Any

import msgspec
import pyarrow as pa
from duckdb import DuckDBPyConnection
from duckdb.func import FunctionNullHandling

from tonlake.api.chain.account import make_state
from tonlake.api.chain.block import check_no_hole_after, find_master, find_range_start
from tonlake.api.chain.run import run_on_state
from tonlake.api.errors import ApiError, RequestInvalid
from tonlake.api.python.source import Opened
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, encode_v3, parse_address
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.errors import TvmError, TvmMissing
from tonlake.lake.duck.answer import ask, naming_the_fault
from tonlake.lake.duck.body_table import add_tables, name_views
from tonlake.queries.reader import Reader, Row

Memory = dict[str, dict[Any, list[Row]]]
"""Rows by query and key."""


_LISTED = {"v2/master_ids": ("seqnos", "seqno"), "v2/shard_utimes": ("mc_seqnos", "mc_seqno")}
"""Queries by a list of keys: the parameter, and the column with the key of a row."""

_CONFIG = "v2/config_params"
_LAST, _HUNDREDTHS = 16, 17
"""Previous masterchain blocks that a contract can query, and those divisible by 100."""


class PastReader(Reader):
    """A reader that caches rows about masterchain blocks in ``known``, which readers share."""

    def __init__(self, *place: Any, known: Memory, **options: Any) -> None:  # noqa: ANN401 - as Reader
        super().__init__(*place, **options)
        self._known = known

    def rows(self, name: str, **parameters: Any) -> list[Row]:  # noqa: ANN401 - as Reader
        """Run one query as ``Reader.rows``."""
        if name == _CONFIG:
            known = self._known.setdefault(name, {})
            key = parameters["mc_seqno"]
            if key not in known:
                known[key] = super().rows(name, **parameters)
            return known[key]
        if name in _LISTED:
            return self._list(name, *_LISTED[name], **parameters)
        return super().rows(name, **parameters)

    def _list(self, name: str, parameter: str, column: str, **parameters: Any) -> list[Row]:  # noqa: ANN401 - as above
        known = self._known.setdefault(name, {})
        fresh = [key for key in parameters[parameter] if key not in known]
        if fresh:
            found: dict[int, list[Row]] = {key: [] for key in fresh}
            for row in super().rows(name, **{parameter: fresh}):
                found[row[column]].append(row)
            known.update(found)
        return [row for key in parameters[parameter] for row in known[key]]


def prepare(reader: Reader, seqnos: Iterable[int]) -> None:
    """Prefetch the network context of contracts after these masterchain blocks."""
    chosen = sorted(set(seqnos))
    near = {max(0, seqno - back) for seqno in chosen for back in range(_LAST)}
    far = {max(0, seqno // 100 - back) * 100 for seqno in chosen for back in range(_HUNDREDTHS)}
    reader.rows("v2/master_ids", seqnos=sorted(near | far))
    reader.rows("v2/shard_utimes", mc_seqnos=chosen)


NAME = "get_method_history"
MAX_POINTS = 1_000_000
"""Maximum accounts times points in time of one call."""

HISTORY = pa.schema(
    [
        ("account", pa.string()),
        ("time", pa.timestamp("us")),
        ("mc_seqno", pa.int64()),
        ("exit_code", pa.int32()),
        ("stack", pa.string()),
        ("error", pa.string()),
    ]
)
_ARGUMENTS: list[Any] = ["VARCHAR[]", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"]
_Ended = tuple[int | None, str | None, str | None]


def read_history(
    opened: Opened,
    accounts: Sequence[Address],
    method: str | int,
    every: timedelta | str,
    first: datetime | str | None,
    last: datetime | str | None,
) -> pa.Table:
    """Return the rows of ``Lake.get_method_history``; raises as that.

    The state is that after the last masterchain block up to a time. The method runs on the first
    state with a code and data; accounts run in parallel. ``error`` is the reason why a row has no
    stack, such as a state that the lake does not know.
    """
    statement = _read_sql("moments")
    found = opened.reader().ask(statement, {"every": str(every), "first": first, "last": last})
    moments = list(zip(*(found[name].to_pylist() for name in ("time", "seqno")), strict=True))
    if len(moments) * len(accounts) > MAX_POINTS:
        raise RequestInvalid(
            f"{len(moments):,} times of {len(accounts):,} accounts are more than "
            f"{MAX_POINTS:,}: reduce them with every, first and last"
        )
    number = method if isinstance(method, int) else method_id(method)
    runner = _Runner(opened, number, [seqno for _time, seqno in moments])
    with ThreadPoolExecutor(opened.source.settings.tvm.workers) as pool:
        ends = list(pool.map(runner.run, accounts))
    rows = [
        (str(account), time, seqno, *ended)
        for account, of_account in zip(accounts, ends, strict=True)
        for (time, seqno), ended in zip(moments, of_account, strict=True)
    ]
    if not rows:
        return HISTORY.empty_table()
    return pa.table(dict(zip(HISTORY.names, zip(*rows, strict=True), strict=True)), HISTORY)


class _Runner:
    """Runs one method at given masterchain blocks; thread-safe."""

    def __init__(self, opened: Opened, method: int, seqnos: Sequence[int]) -> None:
        self._opened, self._method, self._seqnos = opened, method, seqnos
        self._known: dict[tuple[Address, bytes | None, bytes | None], _Ended] = {}
        self._rows: Memory = {}
        prepare(opened.call(partial(PastReader, known=self._rows)).reader, seqnos)

    def run(self, account: Address) -> list[_Ended]:
        """Return the outcome on an account after each of the blocks."""
        call = self._opened.call(partial(PastReader, known=self._rows))
        place = {"workchain": account.workchain, "account": account.account}
        found = call.reader.rows("v2/account_states_at", **place, mc_seqnos=self._seqnos)
        rows = {row["at_mc_seqno"]: row for row in found}
        return [self._run_once(call, account, seqno, rows.get(seqno)) for seqno in self._seqnos]

    def _run_once(self, call: Call, account: Address, seqno: int, row: Row | None) -> _Ended:
        try:
            check_no_hole_after(call, seqno, "this time")
            if row is not None and row["mc_seqno"] >= find_range_start(call, seqno):
                ended = self._known.get((account, row["code_hash"], row["data_hash"]))
                if ended is not None:
                    return ended
            state = make_state(call, account, find_master(call, seqno), row)
            key = (account, state.code_hash, state.data_hash)
            if key not in self._known:
                outcome = run_on_state(call, state, (self._method,))
                values = [encode_v3(value) for value in outcome.stack]
                stack = msgspec.json.encode(values).decode() if state.code_hash else None
                self._known[key] = (outcome.exit_code, stack, None)
            return self._known[key]
        except TvmMissing:
            raise
        except (ApiError, TvmError) as error:
            return None, None, str(error)


def add_history(connection: DuckDBPyConnection, opened: Opened) -> None:
    """Create the table function ``get_method_history``, for connections in the user's process."""

    def run(
        accounts: list[str], method: str, every: str, since: str | None, until: str | None
    ) -> list[dict[str, Any]]:
        addresses = [parse_address(text) for text in accounts]
        found = read_history(opened, addresses, method, every, since, until)
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    known = connection.from_arrow(HISTORY.empty_table())
    row = connection.struct_type(dict(zip(known.columns, known.types, strict=True)))
    connection.create_function(
        "run_get_method_history",
        run,
        _ARGUMENTS,
        connection.list_type(row),
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,
    )
    connection.execute(_read_sql(NAME))


def _read_sql(name: str) -> str:
    return files("tonlake.api.python").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def ask_bodies(
    opened: Opened, statement: str, parameters: Mapping[str, object], signatures: Iterable[str]
) -> pa.Table:
    """Run a statement with the tables of ``signatures`` in its scope; raises as ``Lake.sql``."""
    tables = read_tables(signatures)
    views = name_views(statement, tables)
    with closing(opened.connect(views)) as connection, naming_the_fault(opened.snapshot):
        misfits = add_tables(connection, tables)
        if NAME in statement.lower():
            add_history(connection, opened)
        found = ask(connection, opened.snapshot, statement, parameters).read_all()
    for warning in misfits.warnings():
        warnings.warn(warning, stacklevel=3)
    return found
