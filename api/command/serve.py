"""Commands around the API: serving a lake, and decoding single files as the API would show them."""

from __future__ import annotations

import base64
import gc
import io
import os
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pyarrow as pa

from tonlake.api.command.loading import load_settings
from tonlake.api.command.rows import decode_block_rows
from tonlake.api.command.tail import Tail
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.metrics.logs import configure_logs
from tonlake.api.v3.resource.transaction import render_decoded
from tonlake.ingest.command.metadata import name_fetcher
from tonlake.ingest.errors import IngestError
from tonlake.ingest.run.tail import name_command
from tonlake.ingest.source.origin import Origin
from tonlake.lake.command.argument import SOURCE
from tonlake.lake.command.cli import LAKE_FOLDER
from tonlake.lake.errors import LakeError, SettingsError
from tonlake.lake.process.memory import hold_little
from tonlake.lake.transfer.follow import name_puller

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.api.settings import Settings

EXIT_DATA, EXIT_PARTIAL = 1, 3
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLES = (
    "/api/v3/masterchainInfo",
    "/api/v3/transactions?limit=5",
    "/api/v2/getMasterchainInfo",
    "/docs",
)

ROOT_WARNING = (
    "warning: the service runs as root: start it as a user that can read the lake and nothing else"
)

SERVE_HELP = """
Examples:

\b
  tonlake serve --lake mainnet.lake
  tonlake serve --lake mainnet.lake --host 0.0.0.0 --port 8080
  tonlake serve --node /var/ton-work/db --lake mainnet.lake --follow
  tonlake serve --liteserver global.config.json --lake laptop.lake --follow
  tonlake serve --pull https://lakes.example.org/mainnet --lake copy.lake

With --follow a process beside the server ingests what the node writes, and with --pull it copies
another lake, commit by commit; the lake is made if it is not there yet. /readyz and tonlake status
show how far it is behind.
"""

DECODE_HELP = """
Examples:

\b
  tonlake decode block block.boc
  tonlake decode tx transactions.jsonl.zst
"""


@click.command("serve", epilog=SERVE_HELP)
@click.option("--lake", type=LAKE_FOLDER, required=True, help="Folder of the lake.")
@click.option("--node", type=_FOLDER, help="Database folder of the TON node to follow (read only).")
@click.option("--liteserver", type=_FILE, help="Configuration of a network to follow instead.")
@click.option("--follow", is_flag=True, help="Ingest what the node writes while serving.")
@click.option(
    "--pull", "source", type=SOURCE, help="Lake to copy while serving, as tonlake pull takes it."
)
@click.option("--host", help="Address to listen on.  [default: setting [http] host]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
def serve_command(
    *,
    lake: Path,
    node: Path | None,
    liteserver: Path | None,
    follow: bool,
    source: Path | str | None,
    host: str | None,
    port: int | None,
) -> None:
    """Serve the HTTP API, versions 2 and 3, over a lake; with --follow, and follow a node."""
    if source is not None and (follow or node or liteserver):
        raise click.UsageError("--pull copies another lake: leave out --follow and its node")
    if [node, liteserver].count(None) != (1 if follow else 2):
        raise click.UsageError(
            "--follow goes with --node DIR or --liteserver FILE: name both, or a lake alone"
        )
    settings = _load_settings(http_host=host, http_port=port)
    tails = {}
    if follow:
        tails["follower"] = name_command(Origin(node, None, liteserver), lake, settings)
    if source is not None:
        tails["puller"] = name_puller(str(source), lake, settings)
    if source is not None and settings.metadata.enabled:
        raise click.UsageError(
            "--pull copies token metadata with the rest: set [metadata] enabled = false"
        )
    serve_lake(lake, settings, host=settings.http.host, port=settings.http.port, tails=tails)


def _load_settings(**flags: object) -> Settings:
    try:
        return load_settings(flags=flags)[0]
    except LakeError as error:
        raise click.UsageError(str(error)) from error


def serve_lake(
    lake: Path,
    settings: Settings,
    *,
    host: str,
    port: int,
    tails: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    """Serve a lake until the process is stopped; prints addresses to click.

    Port 0 takes a free one. A lake without commits is served as well: it answers 503 until one
    is there. ``tails`` are commands by name that bring blocks into it: each runs beside this
    process, and ends with it.
    """
    hold_little()
    # The framework takes a second to load, for which every other command would wait.
    from tonlake.api.app import create_app  # noqa: PLC0415 - as above
    from tonlake.api.http.server import StreamingServer  # noqa: PLC0415 - as above

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        click.echo(f"error: cannot listen on {host}, port {port}: {error}", err=True)
        sys.exit(EXIT_DATA)
    name = f"[{host}]" if family == socket.AF_INET6 else host
    for path in _EXAMPLES:
        click.echo(f"http://{name}:{listener.getsockname()[1]}{path}")
    if os.geteuid() == 0:
        click.echo(ROOT_WARNING, err=True)
    try:
        app = create_app(lake, settings)
    except (KeyFileInvalid, SettingsError) as error:
        listener.close()
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_DATA)
    app.state.followed = bool(tails)
    server = StreamingServer(
        app,
        app.state.hub.end_clients,
        app.state.connections,
        body_s=settings.http.body_timeout_ms / 1000,
    )
    configure_logs(settings.log)
    with (
        _settled(),
        _accompanied(tails, lake, settings),
        suppress(KeyboardInterrupt),  # Ctrl-C is no fault
    ):
        server.run(sockets=[listener])


@contextmanager
def _settled() -> Iterator[None]:
    """Take what is there by now for good while the block runs.

    Modules, routes and types are a hundred thousand objects: to look through them for rubbish again
    and again would stop all threads for a tenth of a second each time.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _accompanied(
    commands: Mapping[str, Sequence[str]], lake: Path, settings: Settings
) -> Iterator[None]:
    """Keep processes running: those that bring blocks, and one that fetches, if that is on."""
    pause_s = settings.follow.restart_s
    tails = [Tail(command, most_pause_s=pause_s, name=name) for name, command in commands.items()]
    if settings.metadata.enabled:
        tails.append(Tail(name_fetcher(lake, settings), most_pause_s=pause_s, name="fetcher"))
    if tails:
        # The server raises the signal again that ended it: the processes beside it must end too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for tail in tails:
        tail.start()
    try:
        yield
    finally:
        for tail in tails:
            tail.stop()


@click.group("decode", epilog=DECODE_HELP)
def decode_group() -> None:
    """Decode single blocks and transactions from files, without a lake."""


@decode_group.command("block")
@click.argument("file", type=_FILE)
def decode_block_command(file: Path) -> None:
    """Print every row that a block's bag of cells gives: one JSON object a line.

    Hashes are hex, other bytes base64. mc_seqno is null in rows of a shard block: only the
    masterchain has which of its blocks commits it.
    """
    data = file.read_bytes()
    try:
        for row in decode_block_rows(data):
            _print_json(row)
    except IngestError as error:
        click.echo(f"error: {file.name}: {error}", err=True)
        sys.exit(EXIT_DATA)


@decode_group.command("tx")
@click.argument("file", type=_FILE)
@click.option("--global-version", type=int, help="Version of the network that made them.")
def decode_tx_command(file: Path, global_version: int | None) -> None:
    """Print the version 3 transaction object for the base64 "boc" of each line of a JSONL file.

    A bad line prints {"error": ..., "line": N}; the rest goes on, and the exit code is 3.
    """
    settings = _load_settings()
    bad = 0
    with _open_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                boc = _read_boc(line)
                _print_json(
                    render_decoded(boc, settings.http.opcode_format, global_version=global_version)
                )
            except (IngestError, ValueError, RecursionError) as error:
                bad += 1
                _print_json({"error": str(error), "line": number})
    if bad:
        sys.exit(EXIT_PARTIAL)


class _Line(msgspec.Struct):
    boc: str


def _read_boc(line: bytes) -> bytes:
    """Return the bytes of a line's ``boc``; ValueError where there are none."""
    return base64.b64decode(msgspec.json.decode(line, type=_Line).boc, validate=True)


@contextmanager
def _open_lines(file: Path) -> Iterator[io.BufferedReader]:
    """Open a file of lines, compressed with zstd or not."""
    with file.open("rb") as stream:
        packed = stream.peek(4)[:4] == _ZSTD_MAGIC  # A pipe can be read only once.
        with pa.input_stream(stream, compression="zstd" if packed else None) as lines:
            yield io.BufferedReader(lines)


def _print_json(value: Any) -> None:  # noqa: ANN401 - anything msgspec can write
    click.echo(msgspec.json.encode(value))


commands: list[click.Command] = [serve_command, decode_group]
