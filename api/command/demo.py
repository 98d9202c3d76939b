"""The command ``tonlake demo``: ingests, checks and serves a small genuine node database."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from litestar.testing import TestClient

from tonlake.api.command.serve import listen, serve_lake
from tonlake.api.settings import Settings
from tonlake.ingest.command.ingest import show_blocks
from tonlake.ingest.demo.node import ingest_archive, open_shipped
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.pipeline import IngestReport
from tonlake.lake.command.argument import LAKE_FOLDER
from tonlake.lake.command.cli import failing_cleanly, read_settings
from tonlake.lake.maintenance.verify import verify_lake


class DemoFailed(click.ClickException):
    """The self-check of the demo failed."""

    exit_code = 1


@click.command("demo")
@click.option(
    "--archive",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Node database as .tar.zst, instead of the built-in one.",
)
@click.option(
    "--lake",
    type=LAKE_FOLDER,
    default=Path(".demo/lake"),
    show_default=True,
    help="Folder of the lake to create.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port; 0 takes a free one.",
)
@click.option("--once", is_flag=True, help="Stop after the self-check instead of serving.")
def demo_command(*, archive: Path | None, lake: Path, host: str, port: int, once: bool) -> None:
    """Ingest a small real node, check the answers, and serve them."""
    settings = read_settings(Settings)
    if not once:
        listen(host, port).close()  # find out now whether the port is free, not after the work
    report = _ingest(archive, lake, settings)
    click.echo(f"2. ingested into {lake}: " + _rows_in_words(report))
    if damage := verify_lake(lake).damage:
        raise DemoFailed(f"the lake is damaged: {damage}")
    click.echo("3. every file of the lake matches its digest in the log")
    lines, paths = _check_answers(lake, settings)
    for line in lines:
        click.echo(f"4. {line}")
    click.echo("demo: all checks passed")
    if once:
        return
    click.echo("\nAddresses to click (Ctrl-C stops the server):")
    for path in paths:
        click.echo(f"  http://{host}:{port}{path}")
    serve_lake(lake, settings, host=host, port=port)


def _ingest(archive: Path | None, lake: Path, settings: Settings) -> IngestReport:
    opened = open_shipped() if archive is None else nullcontext(archive)
    try:
        with failing_cleanly(), opened as path, show_blocks() as show:
            click.echo(f"1. a TON node's database: {path}")
            return ingest_archive(path, lake, settings, show)
    except SourceError as error:
        raise DemoFailed(str(error)) from error


def _rows_in_words(report: IngestReport) -> str:
    if not report.committed:
        return f"masterchain {report.requested} was already ingested"
    rows = ", ".join(f"{count:,} {name}" for name, count in report.rows.items() if count)
    return f"masterchain {report.requested}: {rows}"


def _get(client: TestClient[Any], path: str) -> Any:  # noqa: ANN401 - JSON of any shape
    answer = client.get(path)
    if answer.status_code != 200:  # noqa: PLR2004 - HTTP OK
        raise DemoFailed(f"{path} answered {answer.status_code}: {answer.text}")
    return answer.json()


def _check_answers(lake: Path, settings: Settings) -> tuple[list[str], list[str]]:
    """Send the same queries to v2 and v3, which must agree; return texts, and paths to show."""
    # Loading the application takes a second, which other commands do without.
    from tonlake.api.app import create_app  # noqa: PLC0415 - as above

    with TestClient(create_app(lake, settings)) as client:
        last = _get(client, "/api/v3/masterchainInfo")["last"]["seqno"]
        if _get(client, "/api/v2/getMasterchainInfo")["result"]["last"]["seqno"] != last:
            raise DemoFailed("v2 and v3 name different last masterchain blocks")
        richest = _get(client, "/api/v3/topAccountsByBalance?limit=1")[0]
        address, balance = richest["account"], richest["balance"]
        if _get(client, f"/api/v2/getAddressBalance?address={address}")["result"] != balance:
            raise DemoFailed(f"v2 and v3 name different balances of {address}")
        newest = _get(client, f"/api/v3/transactions?account={address}&limit=1")["transactions"]
        v2_newest = _get(client, f"/api/v2/getTransactions?address={address}&limit=1")["result"]
        if [tx["hash"] for tx in newest] != [tx["transaction_id"]["hash"] for tx in v2_newest]:
            raise DemoFailed(f"v2 and v3 name different last transactions of {address}")
        second = _get(client, "/api/v3/topAccountsByBalance?limit=2")[-1]["account"]
    return [
        f"last masterchain block {last}, the same from v2 and v3",
        f"largest balance {int(balance) / 1e9:,.2f} TON at {address}, the same from v2 and v3",
        f"its last transaction {newest[0]['hash']}, the same from v2 and v3",
    ], [
        "/",
        f"/account/{second}",
        "/api/v3/masterchainInfo",
        "/api/v3/topAccountsByBalance?limit=10",
        f"/api/v3/transactions?account={second}&limit=5",
        f"/api/v3/accountStates?address={second}",
        f"/api/v2/getAddressInformation?address={second}",
        f"/api/v2/getTransactions?address={second}&limit=5",
    ]


commands: list[click.Command] = [demo_command]
