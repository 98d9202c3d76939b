"""The command ``tonlake decode``: decodes files as the API would return them, without a lake."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
import msgspec
import pyarrow as pa

from tonlake.api.command.loading import load_command_settings
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.resource.transaction import render_decoded
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import DecodeError, IngestError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.schema import TABLES

UNKNOWN_MC_SEQNO = 0

_WRITERS: dict[str, Callable[[Any], Any]] = {
    "hash": bytes.hex,
    "bytes": encode_bytes,
    "hashes": lambda hashes: [item.hex() for item in hashes],
    "json": lambda text: msgspec.Raw(text.encode()),
    "amount": str,
}
"""Converters of columns by type; values of other types are JSON already."""


def decode_block_rows(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the rows of a block, each with its ``table``, or raise BocError or DecodeError."""
    tree = parse_boc(data)
    if len(tree.roots) != 1:
        raise DecodeError(f"a bag of {len(tree.roots)} roots is not a block")
    header = read_header(tree)
    is_master = header.workchain == MASTERCHAIN
    block = BlockId(
        header.workchain,
        header.shard,
        header.seqno,
        tree.hash(tree.roots[0]),
        sha256(data).digest(),
    )
    mc_seqno = header.seqno if is_master else UNKNOWN_MC_SEQNO
    decoded = decode_bundle(McBundle(mc_seqno, (RawBlock(block, data),)))
    for name, rows in decoded.items():
        for row in rows.to_pylist():
            if not is_master:
                row["mc_seqno"] = None
            for column in TABLES[name].columns:
                value = row[column.name]
                if value is not None and column.type in _WRITERS:
                    row[column.name] = _WRITERS[column.type](value)
            yield {"table": name, **row}


EXIT_DATA, EXIT_PARTIAL = 1, 3
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("decode")
def decode_group() -> None:
    """Decode single blocks and transactions from files, without a lake."""


@decode_group.command("block")
@click.argument("file", type=_FILE)
def decode_block_command(file: Path) -> None:
    """Print all rows of a block, given as a bag of cells: one JSON object per line.

    Hashes are hex, other bytes base64. mc_seqno is null in rows of a shard block: only the
    masterchain determines which of its blocks commits it.
    """
    data = file.read_bytes()
    try:
        for row in decode_block_rows(data):
            print_json(row)
    except IngestError as error:
        click.echo(f"error: {file.name}: {error}", err=True)
        sys.exit(EXIT_DATA)


@decode_group.command("tx")
@click.argument("file", type=_FILE)
@click.option("--global-version", type=int, help="Global version of the network they come from.")
def decode_tx_command(file: Path, global_version: int | None) -> None:
    """Print the version 3 transaction object for the base64 "boc" in each line of a JSONL file.

    A bad line prints {"error": ..., "line": N}; the others are still decoded; the exit code is 3.
    """
    settings = load_command_settings()
    bad = 0
    with open_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                boc = msgspec.json.decode(line, type=_BodyLine).boc
                print_json(
                    render_decoded(boc, settings.http.opcode_format, global_version=global_version)
                )
            except (IngestError, ValueError, RecursionError) as error:
                bad += 1
                print_json({"error": str(error), "line": number})
    if bad:
        sys.exit(EXIT_PARTIAL)


class _BodyLine(msgspec.Struct):
    boc: bytes


@contextmanager
def open_lines(file: Path) -> Iterator[io.BufferedReader]:
    """Open a file of lines, plain or compressed with zstd."""
    with file.open("rb") as stream:
        packed = stream.peek(4)[:4] == _ZSTD_MAGIC  # peek, as a pipe can be read only once
        with pa.input_stream(stream, compression="zstd" if packed else None) as lines:
            yield io.BufferedReader(lines)


def print_json(value: Any) -> None:  # noqa: ANN401 - anything msgspec can write
    """Print a value as one line of JSON."""
    click.echo(msgspec.json.encode(value))


commands: list[click.Command] = [decode_group]
