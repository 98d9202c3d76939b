"""The command ``tonlake serve``: serves the HTTP API and the explorer over a lake.

A child process, such as a follower, is started again when it exits.
"""

import errno
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from tonlake.api.command.loading import load_command_settings
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.metrics import configure_logs
from tonlake.api.settings import Settings
from tonlake.ingest.command.metadata import name_fetcher
from tonlake.ingest.command.node import choose_folder, keep_apart, node_option
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.tail import name_command
from tonlake.ingest.source.origin import Origin
from tonlake.lake.command.argument import SOURCE, make_lake_option
from tonlake.lake.command.cli import describe_error, failing_cleanly
from tonlake.lake.copy.follow import name_puller
from tonlake.lake.errors import LakeError, LakeNotFound, SettingsError
from tonlake.lake.log.state import read_state

if TYPE_CHECKING:
    from tonlake.ingest.source.liteserver.query import StateServers


LOG = logging.getLogger("tonlake.follow")
FIRST_PAUSE_S = 0.5
STEADY_S = 60.0
"""A process that ran for this long started well: the next restart pause is short again."""

END_S = 10.0
"""Grace period before the process is killed, which is safe, as commits are atomic."""


class Tail:
    """Keeps one process running; its exit is logged and does not affect the server."""

    def __init__(
        self, command: Sequence[str], *, max_pause_s: float, name: str = "follower"
    ) -> None:
        self._command = tuple(command)
        self._max_pause_s = max_pause_s
        self._name = name
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def start(self) -> None:
        """Start the process in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Terminate the process and wait for it."""
        with self._lock:
            self._is_over.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()

    def _keep(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_over.is_set():
            began_s = time.monotonic()
            code = self._run_once()
            if code is None:
                return
            if time.monotonic() - began_s > STEADY_S:
                pause_s = FIRST_PAUSE_S
            LOG.warning("the %s exited with code %s: restart in %.1f s", self._name, code, pause_s)
            self._is_over.wait(pause_s)
            pause_s = min(self._max_pause_s, pause_s * 2)

    def _run_once(self) -> int | None:
        """Run the process until it exits; return its exit code, or None after ``stop``."""
        with self._lock:
            if self._is_over.is_set():
                return None
            # Its stdin closes when this process ends, however that happens. The new session keeps
            # Ctrl-C away from it, as this process ends it in its own way.
            self._process = subprocess.Popen(  # noqa: S603 - ours
                self._command, stdin=subprocess.PIPE, start_new_session=True
            )
        with self._process as process:
            code = process.wait()
        with self._lock:
            self._process = None
            return None if self._is_over.is_set() else code


EXIT_DATA = 1
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_BANNER = {
    "/": "explorer",
    "/docs": "API reference",
    "/api/v3/masterchainInfo": "API v3",
    "/api/v2/getMasterchainInfo": "API v2",
}
"""Paths printed at the start, with what they show."""

_LISTEN_ADVICE = {
    errno.EADDRINUSE: "stop the process there, or choose another --port (0: a free one)",
    errno.EADDRNOTAVAIL: "--host is an address of this machine, or 0.0.0.0 for all of them",
    errno.EACCES: "ports below 1024 need root: choose a higher --port",
}
"""Advice by errno if the port cannot be opened."""

ROOT_WARNING = "warning: the service runs as root: use a user that can only read the lake"


@click.command("serve")
@make_lake_option("lake")
@node_option
@click.option(
    "--liteserver",
    type=_FILE,
    help="Configuration of a network: lite servers to fetch unknown accounts from, and, with"
    " --follow and no node, blocks.",
)
@click.option("--follow", is_flag=True, help="Ingest new blocks of the node while serving.")
@click.option(
    "--pull", "source", type=SOURCE, help="Lake to copy while serving, as for tonlake pull."
)
@click.option("--wait", is_flag=True, help="Serve a lake that has no commit yet: 503 until then.")
@click.option("--host", help="Address to listen on.  [default: setting [http] host]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
def serve_command(
    *,
    lake: Path,
    node: Path | None,
    liteserver: Path | None,
    follow: bool,
    source: Path | str | None,
    wait: bool,
    host: str | None,
    port: int | None,
) -> None:
    """Serve versions 2 and 3 of the HTTP API over a lake; with --follow, also follow a node."""
    if source is not None and (follow or node):
        raise click.UsageError("--pull copies another lake: leave out --follow and its node")
    node = choose_folder(node, elsewhere=liteserver is not None or not follow)
    if follow and node is None and liteserver is None:
        raise click.UsageError("--follow needs --node DIR or --liteserver FILE")
    if node is not None and not follow:
        raise click.UsageError("--node needs --follow: serving a lake does not need its node")
    keep_apart(lake, node)
    settings = load_command_settings(http_host=host, http_port=port)
    _check_lake(lake, grows=follow or source is not None, wait=wait)
    serve_lake(
        lake,
        settings,
        host=settings.http.host,
        port=settings.http.port,
        tails=_name_tails(
            lake,
            settings,
            Origin(node, None, None if node else liteserver) if follow else None,
            source,
        ),
        servers=None if liteserver is None else _open_servers(liteserver, settings),
    )


def _open_servers(config: Path, settings: Settings) -> "StateServers":
    """Return the lite servers of a configuration; exit with an error if it is invalid."""
    # Loading takes half a second, which other commands do without.
    from tonlake.api.chain.account import TIMEOUT_MS  # noqa: PLC0415
    from tonlake.ingest.source.liteserver.query import StateServers  # noqa: PLC0415

    with failing_cleanly(SourceError):
        return StateServers(
            config, timeout_ms=TIMEOUT_MS, parallel_queries=settings.liteserver.queries
        )


def _name_tails(
    lake: Path, settings: Settings, origin: Origin | None, source: Path | str | None
) -> dict[str, list[str]]:
    """Return the commands of the server's child processes, by name."""
    if source is not None and settings.metadata.enabled:
        raise click.UsageError(
            "--pull copies token metadata with the rest: set [metadata] enabled = false"
        )
    tails = {}
    if origin is not None:
        tails["follower"] = name_command(origin, lake, settings)
    if source is not None:
        tails["puller"] = name_puller(str(source), lake, settings)
    return tails


def _check_lake(lake: Path, *, grows: bool, wait: bool) -> None:
    """Exit with an error if there is no lake to serve, or its log is damaged.

    A lake without commits is accepted if a child process adds them (``grows``), or with ``wait``,
    which prints that the server waits.
    """
    try:
        read_state(lake)
    except LakeNotFound as error:
        if grows:
            return
        if wait:
            click.echo(f"waiting for the first commit of {lake}: 503 until then", err=True)
            return
        refusal = f"{error}, --wait serves it from its first commit on"
    except LakeError as error:
        refusal = str(error)
    except OSError as error:
        refusal = f"the lake {lake} cannot be read: {describe_error(error)}"
    else:
        return
    click.echo(f"error: {refusal}", err=True)
    sys.exit(EXIT_DATA)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; exit with an error and advice if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        advice = _LISTEN_ADVICE.get(error.errno or 0, "check --host and --port")
        click.echo(f"error: cannot listen on {host}, port {port}: {reason}; {advice}", err=True)
        sys.exit(EXIT_DATA)


def serve_lake(
    lake: Path,
    settings: Settings,
    *,
    host: str,
    port: int,
    tails: Mapping[str, Sequence[str]] = MappingProxyType({}),
    servers: "StateServers | None" = None,
) -> None:
    """Serve a lake until the process is stopped; print the addresses.

    Port 0 selects a free one. A lake without commits responds 503 until its first commit.
    ``tails`` are commands by name that ingest or copy blocks: each runs as a child process.
    ``servers`` are asked for accounts that the lake does not know.
    """
    # Loading the framework takes a second, which other commands do without.
    from tonlake.api.app import create_app  # noqa: PLC0415 - as above
    from tonlake.api.http.server import StreamingServer  # noqa: PLC0415 - as above

    listener = listen(host, port)
    name = f"[{host}]" if listener.family == socket.AF_INET6 else host
    for path, text in _BANNER.items():
        click.echo(f"http://{name}:{listener.getsockname()[1]}{path}  {text}")
    if os.geteuid() == 0:
        click.echo(ROOT_WARNING, err=True)
    try:
        app = create_app(lake, settings, servers=servers)
    except (KeyFileInvalid, SettingsError) as error:
        listener.close()
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_DATA)
    app.state.followed = bool(tails)
    server = StreamingServer(app, app.state.end_streams, app.state.connections)
    configure_logs(settings.log)
    gc.collect()
    gc.freeze()  # a full collection of routes and types would stop all threads for 0.1 s
    with (
        _with_children(tails, lake, settings),
        suppress(KeyboardInterrupt),  # Ctrl-C is not an error
    ):
        server.run(sockets=[listener])


@contextmanager
def _with_children(
    commands: Mapping[str, Sequence[str]], lake: Path, settings: Settings
) -> Iterator[None]:
    """Keep child processes running: ``commands``, and the metadata fetcher if it is enabled."""
    pause_s = settings.follow.restart_s
    tails = [Tail(command, max_pause_s=pause_s, name=name) for name, command in commands.items()]
    if settings.metadata.enabled:
        tails.append(Tail(name_fetcher(lake, settings), max_pause_s=pause_s, name="fetcher"))
    if tails:
        # The server re-raises the signal that ended it; this lets the child processes end first.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for tail in tails:
        tail.start()
    try:
        yield
    finally:
        for tail in tails:
            tail.stop()


commands: list[click.Command] = [serve_command]
