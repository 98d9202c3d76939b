"""What people ask of contracts on the command line: to detect them all anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tonlake.ingest.derive.contract.rebuild import rebuild_contracts
from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.cli import failing_cleanly, lake_option, read_settings, tell_rebuilt

if TYPE_CHECKING:
    from pathlib import Path


@click.command("contracts", epilog="Example: tonlake rebuild contracts --lake mainnet.lake")
@lake_option
def rebuild_contracts_command(*, lake_dir: Path) -> None:
    """Drop what is known of wallets, jettons, NFTs and other contracts, and detect them again.

    Needed after ranges were ingested out of order, without a TVM, or with detect_contracts off.
    """
    with failing_cleanly():
        settings = read_settings(IngestSections)
        commit = rebuild_contracts(lake_dir, settings)
    added = () if commit is None else commit.added
    tell_rebuilt(commit, "contracts", sorted({file.table for file in added}))
