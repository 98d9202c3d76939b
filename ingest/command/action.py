"""The commands ``tonlake classify`` and ``tonlake explain``."""

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from click.core import ParameterSource

from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.derivation import classify_traces, read_known
from tonlake.ingest.derive.action.explanation import explain
from tonlake.ingest.derive.action.gathering import KnownContracts, gather_sources
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Trace
from tonlake.ingest.derive.action.recording import read_traces
from tonlake.ingest.derive.action.row import show_actions
from tonlake.ingest.errors import IngestError
from tonlake.lake.account import read_hash
from tonlake.lake.command.argument import LAKE_VARIABLE, Folder
from tonlake.lake.command.cli import failing_cleanly
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TRACES
from tonlake.lake.settings import LakeSettings

CLASSIFY_EXAMPLES = """
Examples:

\b
  tonlake classify recorded.jsonl.zst
  tonlake classify recorded.jsonl.zst | jq '.actions[].type'
"""
EXPLAIN_EXAMPLES = """
Examples:

\b
  tonlake explain 7DPBQ4/A8bTpVVLgVhIsZ0VISt2RzWHzBYl8wo7/Gao= --lake mainnet.lake
  tonlake explain mG5NGg-37hpz1Vgs5KvDo0HKgtQKCnMbmGEpdApY5Ls= --traces recorded.jsonl.zst
"""
File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("classify", epilog=CLASSIFY_EXAMPLES)
@click.argument("recording", type=File)
def classify_command(*, recording: Path) -> None:
    """Print the actions of recorded traces: a JSON object per line of a .jsonl or .jsonl.zst file.

    Each line of the file has transactions, messages and interface records of one trace; each line
    of the output has its trace_key, the state of the classification and the actions.
    """
    with failing_cleanly():
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


@click.command("explain", epilog=EXPLAIN_EXAMPLES)
@click.argument("trace")
@click.option(
    "--lake",
    "lake_dir",
    type=Folder(),
    envvar=LAKE_VARIABLE,
    show_envvar=True,
    help="Folder of the lake with the trace.",
)
@click.option("--traces", "recording", type=File, help="File of recorded traces with the trace.")
def explain_command(*, trace: str, lake_dir: Path | None, recording: Path | None) -> None:
    """Print the messages of a trace as a tree, each with the rules that matched it.

    TRACE is the hash of its root transaction, in hex or base64.
    """
    source = click.get_current_context().get_parameter_source("lake_dir")
    if recording is not None and source is ParameterSource.ENVIRONMENT:
        lake_dir = None
    if (lake_dir is None) == (recording is None):
        raise click.UsageError("name the source of the trace: --lake DIR or --traces FILE")
    trace_id = _read_hash(trace)
    with failing_cleanly():
        try:
            recorded = read_traces(recording) if recording else ()
            found = next(
                ((one, facts) for _, one, facts in recorded if one.trace_id == trace_id), None
            )
            if lake_dir is not None:
                found = find_stored(lake_dir, trace_id)
        except IngestError as error:
            raise click.ClickException(str(error)) from error
        if found is None:
            raise click.ClickException(f"trace {trace} was not found, or is not complete")
        for line in explain(*found):
            click.echo(line)


def _read_hash(text: str) -> bytes:
    try:
        return read_hash(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def find_stored(lake_dir: Path, trace_id: bytes) -> tuple[Trace, Interfaces] | None:
    """Return a trace of a lake with its accounts' interfaces; None if it is not in the lake."""
    state = read_state(lake_dir)
    for file in state.files:
        if file.table != TRACES.name:
            continue
        rows = read_rows(lake_dir, file)
        row = rows.filter(pc.equal(rows["trace_id"], pa.scalar(trace_id, rows["trace_id"].type)))
        if row.num_rows:
            sources = gather_sources(lake_dir, state, row, {}, Place(0, 0, ""))
            known = KnownContracts(lake_dir, LakeSettings(), state)
            facts = classify_traces(row, sources, known.find).facts
            return next(read_known(row, sources, facts), None)
    return None


commands: list[click.Command] = [classify_command, explain_command]
