"""The command ``tonlake run``: runs get-methods of code and data from files, without a lake."""

import base64
import os
import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from tonlake.api.command.decode import EXIT_DATA, EXIT_PARTIAL, open_lines, print_json
from tonlake.api.errors import RequestInvalid
from tonlake.api.text.encoding import parse_address, read_argument
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    VERSION_PARAM,
    Context,
    StackLimits,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmSlice,
    join_config,
    make_version_param,
    method_id,
)
from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, plant
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.run import (
    VERSION,
    Ended,
    StackExporter,
    enter_value,
    execute,
    open_bag,
    open_code,
    open_config,
    replace_version,
)
from tonlake.ingest.derive.tvm.machine.vmstack import build_stack, read_stack
from tonlake.ingest.errors import BocError, TvmError
from tonlake.lake.account import decode_base64

_RECURSION = 10_000
_NATURAL = click.IntRange(min=0)
_LIMITS = StackLimits(entries=100_000, depth=1000, boc_bytes=64 << 20)
_BAGS: dict[str, type[TvmCell | TvmSlice | TvmBuilder]] = {
    "cell": TvmCell,
    "slice": TvmSlice,
    "builder": TvmBuilder,
}


class _RunLine(msgspec.Struct):
    """A run of the file."""

    code: bytes
    data: bytes = b""
    v: int | None = None
    method: str | int = 0
    stack: Any = ()
    address: str = "0:" + "0" * 64
    time: int | None = None
    balance: int | str = 0
    seed: str = "0" * 64
    gas_limit: int = 1_000_000


@click.command("run")
@click.argument("method")
@click.argument("arguments", nargs=-1, metavar="[ARG]…")
@click.option("--code", help="Code: a file, or a bag of cells in base64 or hex.")
@click.option("--data", default="", help="Data, in the same forms.  [default: an empty cell]")
@click.option("--config", default="", help="Configuration (Hashmap 32 ^Cell), in the same forms.")
@click.option("--address", default="0:" + "0" * 64, help="Address of the account.")
@click.option("--balance", type=_NATURAL, default=0, help="Balance in nanoton.", show_default=True)
@click.option(
    "--gas-limit", type=_NATURAL, default=1_000_000, show_default=True, help="Limit of gas."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run_command(
    *,
    method: str,
    arguments: tuple[str, ...],
    code: str | None,
    data: str,
    config: str,
    address: str,
    balance: int,
    gas_limit: int,
    as_json: bool,
) -> None:
    """Run a get-method of code and data, without a lake or a network.

    METHOD is a name or a number; an ARG is a number (a negative one after --), an address, null,
    or cell:BAG or slice:BAG.
    Without --code, METHOD is a file of runs: one JSON object per line, answered line by line.
    """
    sys.setrecursionlimit(_RECURSION)
    params = ((VERSION_PARAM, make_version_param(VERSION)),)
    network = _read_bag(config) if config else join_config(params).root
    if code is None:
        if arguments:
            raise click.UsageError("--code is needed to run a method with arguments.")
        _run_lines(Path(method), network)
        return
    line = _RunLine(
        code=_read_bag(code),
        data=_read_bag(data) if data else b"",
        method=int(method, 0) if method.lstrip("-").isdecimal() else method,
        address=address,
        balance=balance,
        gas_limit=gas_limit,
    )
    try:
        stack = [_read_argument(text) for text in arguments]
        _show(_run(line, stack, network), as_json=as_json)
    except (ValueError, TvmError, BocError, RequestInvalid) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_DATA)


def _read_bag(text: str) -> bytes:
    """Return the bytes of a bag in a file, or in base64 or hex."""
    if os.path.isfile(text):  # noqa: PTH113 - Path.is_file refuses what is too long for a name
        data = Path(text).read_bytes()
        if data[:1] in (b"\xb5", b"\x68", b"\xac"):
            return data
        text = data.decode("ascii", "replace")
    text = "".join(text.split())
    try:
        return bytes.fromhex(text) if text[:8].lower() == "b5ee9c72" else decode_base64(text)
    except ValueError as error:
        raise click.UsageError(f"{text[:40]} is neither a file nor a bag of cells.") from error


def _read_argument(text: str) -> StackValue:
    """Return a stack value for an argument of the command line."""
    if text == "null":
        return None
    kind, found, bag = text.partition(":")
    if found and kind in _BAGS:
        return _BAGS[kind](_read_bag(bag))
    try:
        return read_argument(int(text, 0))
    except ValueError:
        return read_argument(text)


def _run_lines(file: Path, network: bytes) -> None:
    """Answer the runs of a file line by line; a bad one does not stop the others."""
    bad = 0
    try:
        with open_lines(file) as stream:
            for text in stream:
                if text.strip():
                    answer = _answer(text, network)
                    bad += "error" in answer
                    print_json(answer)
    except FileNotFoundError as error:
        raise click.UsageError(
            f"{file} is not a file of runs; give --code to run a get-method of that name."
        ) from error
    if bad:
        sys.exit(EXIT_PARTIAL)


def _answer(text: bytes, network: bytes) -> dict[str, Any]:
    try:
        line = msgspec.json.decode(text, type=_RunLine)
        if isinstance(line.stack, str):
            stack = list(read_stack(msgspec.convert(line.stack, bytes), _LIMITS))
        else:
            stack = [_read_value(value) for value in line.stack]
        ended = _run(line, stack, network)
        tree, place = plant(build_stack(ended.stack))
    except VmError:
        return {"error": "the resulting stack is too deep for cells"}
    except (ValueError, TypeError, BocError, TvmError, RequestInvalid) as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": "a value is nested too deeply"}
    bag = base64.b64encode(serialize_boc(tree, [place], crc32c=True)).decode()
    return {"exit": ended.exit_code, "gas": ended.gas_used, "stack": bag}


def _read_value(value: Any) -> StackValue:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return tuple(map(_read_value, value))
    if isinstance(value, dict):
        [(kind, bag)] = value.items()
        if kind not in _BAGS:
            raise ValueError(f"{kind!r} is none of {', '.join(_BAGS)}")
        return _BAGS[kind](msgspec.convert(bag, bytes))
    return read_argument(_read_number(value) if isinstance(value, str) else value)


def _read_number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError as error:
        raise ValueError(f"{text[:80]!r} is not a number") from error


def _run(line: _RunLine, stack: list[StackValue], network: bytes) -> Ended:
    """Run a get-method; RequestInvalid, ValueError, BocError: invalid line; TvmError: version."""
    config = open_config(network)
    version = config.version if line.v is None else line.v
    if line.v is not None and line.v != config.version:
        network = replace_version(network, line.v)
    address = parse_address(line.address)
    method = method_id(line.method) if isinstance(line.method, str) else line.method
    context = Context(
        workchain=address.workchain,
        account=address.account,
        now=int(time.time()) if line.time is None else line.time,
        balance=_read_number(str(line.balance)),
        currencies={},
        config=network,
        version=version,
        previous=None,
        seed=bytes.fromhex(line.seed),
    )
    data = open_bag(line.data) if line.data else EMPTY_CELL
    code = open_code(line.code)
    ended = execute(code, data, [*map(enter_value, stack), method], context, line.gas_limit)
    if ended.exit_code == Exit.INVALID_OPCODE and version > VERSION:
        raise TvmError(
            f"tonlake supports global version {VERSION}, and the network has {version}: "
            "the get-method met an instruction that it does not know"
        )
    return ended


def _show(ended: Ended, *, as_json: bool) -> None:
    """Print an outcome for people, or as JSON."""
    stack = StackExporter(_LIMITS).read(ended.stack)
    if as_json:
        values = [_describe(value) for value in stack]
        print_json({"exit": ended.exit_code, "gas": ended.gas_used, "stack": values})
        return
    click.echo(f"exit code {ended.exit_code}, gas {ended.gas_used:,}")
    for value in stack:
        click.echo(_format(value))


def _describe(value: StackValue) -> Any:  # noqa: ANN401 - JSON
    if value is None or isinstance(value, int):
        return None if value is None else str(value)
    if isinstance(value, tuple | list):
        return [_describe(item) for item in value]
    for name, kind in _BAGS.items():
        if isinstance(value, kind):
            return {name: base64.b64encode(value.boc).decode()}
    return {"other": type(value).__name__.removeprefix("Tvm").lower()}


def _format(value: StackValue) -> str:
    if value is None or isinstance(value, int):
        return str(value) if value is not None else "null"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_format, value))}]"
    for name, kind in _BAGS.items():
        if isinstance(value, kind):
            tree = parse_boc(value.boc)
            root = tree.roots[0]
            bits, refs = tree.bit_length(root), len(tree.links[root])
            return f"{name} ({bits} bits, {refs} references) {value.boc.hex()}"
    return type(value).__name__.removeprefix("Tvm").lower()


commands: list[click.Command] = [run_command]
