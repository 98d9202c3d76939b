"""Random scans, and the answers of SQL to the same questions."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tonlake.api.python.lake import Lake
from tonlake.api.text.encoding import name_workchain
from tonlake.lake.scan.plan import SCANNED, list_joins
from tonlake.lake.schema import Table

MATCHED = ("int8", "int32", "int64", "hash", "text", "bool", "amount", "hashes", "texts", "ints")
_JOINS = {
    "transaction": "left join transactions as transaction on t.{hash} = transaction.hash",
    "trace": "left join transaction_traces as trace on t.{hash} = trace.hash",
    "body": """left join message_bodies as body on t.body_hash = body.body_hash
        and t.mc_seqno = body.mc_seqno and (t.kind = 'ext_in') = body.external_in""",
    "state": """left join (
        from account_states
        qualify row_number() over (
            partition by workchain, account, mc_seqno order by block_seqno desc
        ) = 1
    ) as state on t.{workchain} = state.workchain and t.{account} = state.account
        and t.mc_seqno = state.mc_seqno""",
    "interface": """left join (
        from interfaces
        qualify row_number() over (partition by code_hash order by mc_seqno desc) = 1
    ) as interface on {code_hash} = interface.code_hash""",
}


class Asked(NamedTuple):
    """A scan's table and options, and the same as a statement with its parameters."""

    table: str
    options: dict[str, Any]
    statement: str
    values: dict[str, Any]


def draw(
    chance: random.Random, lake: Lake, only: Mapping[str, Sequence[str]] | None = None
) -> Asked:
    """Return a random scan that finds rows; ``only`` has the tables and columns to choose from."""
    table = SCANNED[chance.choice(sorted(only or SCANNED))].table
    joins = list_joins(table)
    known = [*table.names]
    if only is None:
        known += [f"{each.name}.{name}" for each in joins.values() for name in each.table.names]
    columns = chance.sample(known, min(len(known), chance.randint(1, 6)))
    filtered = known if only is None else only[table.name]
    first, last = sorted(chance.choices(range(lake.ranges[0][1] + 1), k=2))
    where: list[dict[str, Any]] = []
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for _ in range(chance.choice((0, 1, 1, 2))):
        selection: dict[str, list[Any]] = {}
        parts = []
        for _ in range(chance.randint(1, 3)):
            name = chance.choice(filtered)
            column = _find(table, name)
            if column.type not in MATCHED or name in selection:
                continue
            drawn = _draw_values(chance, lake, table, name)
            if not drawn:
                continue
            parts.append(_match(table, name, drawn, selection, values))
        if parts:
            where.append(selection)
            conditions.append(" and ".join(parts))
    height = table.height
    shown = ", ".join(f'{_qualify(name)} as "{name}"' for name in columns)
    joined = "\n".join(
        _write_join(table, name) for name in joins if _is_used(name, joins, columns, conditions)
    )
    # What a commit replaces is not final: open traces are no part of a scan.
    final = " and t.state in ('complete')" if table.name == "traces" else ""
    text = f"""select {shown} from {table.name} as t {joined}
        where t.{height} between {first} and {last} {final}
        and ({" or ".join(f"({one})" for one in conditions) or "true"})
        order by {", ".join(f"t.{name}" for name in (height, *table.sort))}"""  # noqa: S608 - names of the schema
    options = {"where": where, "columns": columns, "start": first, "stop": last}
    return Asked(table.name, options, text, values)


def _find(table: Table, name: str) -> Any:
    prefix, dot, rest = name.partition(".")
    of = list_joins(table)[prefix].table if dot else table
    return next(each for each in of.columns if each.name == (rest if dot else name))


def _qualify(name: str) -> str:
    return name if "." in name else f"t.{name}"


def _write_join(table: Table, name: str) -> str:
    start = "tx_" if table.name == "messages" else ""
    own = "t.code_hash" if "code_hash" in table.names else "state.code_hash"
    return _JOINS[name].format(
        hash="tx_hash" if "tx_hash" in table.names else "hash",
        workchain=f"{start}workchain",
        account=f"{start}account",
        code_hash=own,
    )


def _is_used(
    name: str, joins: Mapping[str, Any], columns: list[str], conditions: list[str]
) -> bool:
    text = " ".join((*columns, *conditions))
    return f"{name}." in text or (name == "state" and "interface." in text and "state" in joins)


def _draw_values(chance: random.Random, lake: Lake, table: Table, name: str) -> list[Any]:
    """Return values that some rows have, and perhaps NULL; addresses include their workchain."""
    prefix, dot, rest = name.partition(".")
    of = list_joins(table)[prefix].table if dot else table
    column = rest if dot else name
    pair = name_workchain(column)
    is_pair = pair in of.names and _find(of, column).type == "hash"
    head = f"struct_pack(w := {pair}, a := {column})" if is_pair else column
    if _find(of, column).type in ("hashes", "texts", "ints"):
        head = f"unnest({column})"
    text = f"select distinct {head} as v from {of.name} order by v"  # noqa: S608
    listed = [row[0] for row in lake.sql(text).fetchall()]
    listed = [one for one in listed if not is_pair or one["a"] is not None]
    return chance.sample(listed, min(len(listed), chance.randint(1, 5)))


def _match(
    table: Table,
    name: str,
    drawn: list[Any],
    selection: dict[str, list[Any]],
    values: dict[str, Any],
) -> str:
    """Add a filter to a selection, and return it as a condition of SQL."""
    key = f"v{len(values)}"
    kind = _find(table, name).type
    column = _qualify(name)
    if isinstance(drawn[0], dict):
        selection[name] = [f"{one['w']}:{one['a'].hex()}" for one in drawn]
        values[key] = selection[name]
        address = f"ton_address({name_workchain(column)}, {column})"
        return f"{address} in (select upper(unnest(${key})))"
    selection[name] = [one.hex() if isinstance(one, bytes) else _plain(one) for one in drawn]
    values[key] = drawn
    if kind in ("hashes", "texts", "ints"):
        return f"coalesce(list_has_any({column}, ${key}), false)"
    has_null = None in drawn
    return f"({column} in (select unnest(${key})) {f'or {column} is null' if has_null else ''})"


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else int(value)
