"""What people ask of actions on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ingest.action.classifier import classify
from ingest.action.recording import read_traces
from ingest.action.row import show_actions
from ingest.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = """
Examples:

\b
  tonlake classify recorded.jsonl.zst
  tonlake classify recorded.jsonl.zst | jq '.actions[].type'
"""


@click.command("classify", epilog=EXAMPLES)
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def classify_command(*, recording: Path) -> None:
    """Print what recorded traces did: a JSON object for each line of a .jsonl or .jsonl.zst file.

    Each line of the file holds transactions, messages and interface records of one trace; each
    line of the answer its trace_key, the state of the classification and the actions.
    """
    try:
        for line in classify_recording(recording):
            click.echo(line)
    except IngestError as error:
        raise click.ClickException(str(error)) from error


def classify_recording(recording: Path) -> Iterator[bytes]:
    """Yield a JSON object for each trace of a recording."""
    for key, trace, interfaces in read_traces(recording):
        state, actions = classify(trace, interfaces)
        yield msgspec.json.encode(
            {"trace_key": key, "state": state, "actions": show_actions(trace, actions)}
        )


commands: list[click.Command] = [classify_command]
