"""The command ``tonlake doctor``: checks machine, settings, access, node folder and lake."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import click
import msgspec

from tonlake.api.access import read_keys
from tonlake.api.command.status import describe_versions
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.http.address import is_own_machine
from tonlake.api.settings import Settings
from tonlake.ingest.assemble.chain import check_origin
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.command.node import NODE_VARIABLE
from tonlake.ingest.decode import native
from tonlake.ingest.derive.tvm.pool import HOW_TO_INSTALL
from tonlake.ingest.derive.tvm.support import (
    REMEDY,
    Versions,
    compare_versions,
    find_engine,
    list_engines,
    name_remedy,
)
from tonlake.ingest.errors import IngestError, SourceError
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.command.argument import make_lake_option
from tonlake.lake.command.cli import json_option, read_settings
from tonlake.lake.command.status import Status, read_status
from tonlake.lake.duck.statement import name_root
from tonlake.lake.errors import PERMIT, LakeError, LakeMisplaced, LakeNotFound, LakeTooNew
from tonlake.lake.log.following import find_lateness
from tonlake.lake.log.place import list_stored
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_commit, read_state
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.unanswered import Unanswered

Level = Literal["ok", "warning", "problem"]


class Checked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check; ``advice`` is a remedy, "" if all is well."""

    subject: str
    level: Level
    text: str
    advice: str = ""


def worst_of(findings: list[Checked]) -> Level:
    """Return the level of the worst finding."""
    return max((one.level for one in findings), key=get_args(Level).index)


def _judge(subject: str, fine: str, fault: str, advice: str) -> Checked:
    """Return ``fault`` as a warning with advice, or ``fine`` if there is no fault."""
    return Checked(subject, "warning", fault, advice) if fault else Checked(subject, "ok", fine)


FREE_BYTES = 5 << 30
MANY_FILES = 1000
OPEN_FILES = 1024
"""Minimum limit of open files, for the files of a large lake and client connections."""


def check_machine(settings: Settings) -> Iterator[Checked]:
    """Check the machine: decoder, TVM, memory, open files."""
    yield Checked("decoder", "ok", f"blocks are decoded by: {native.describe()}")
    yield _check_engine(settings)
    memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    wanted_mib = settings.lake.duckdb_memory_mib + settings.http.cache_mib
    text = f"{memory_mib:,} MiB, of which queries and the response cache may use {wanted_mib:,}"
    much = text if wanted_mib > memory_mib // 2 else ""
    yield _judge("memory", text, much, "lower the setting [lake] duckdb_memory_mib")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    text = f"{limit} may be open at once"
    few = f"only {text}" if limit != resource.RLIM_INFINITY and limit < OPEN_FILES else ""
    advice = f"ulimit -n {OPEN_FILES * 4}, or LimitNOFILE in the service's unit"
    yield _judge("open files", text, few, advice)


def _check_engine(settings: Settings) -> Checked:
    library = settings.tvm.emulator_library
    if not library:
        lacking = HOW_TO_INSTALL if find_spec("tonpy") is None else ""
        return _judge("TVM", "get-methods can be run", lacking, "pip install 'tonlake[tvm]'")
    version = find_engine(settings.tvm).version
    if version is None:
        text = "does not exist" if not Path(library).is_file() else "cannot be used"
        advice = "name a libemulator in the setting [tvm] emulator_library, or leave it unset"
        return Checked("TVM", "problem", f"{library} {text}", advice)
    return Checked("TVM", "ok", f"get-methods are run by {library}, global version {version}")


def check_access(settings: Settings) -> Iterator[Checked]:
    """Check access to the service: address, keys, limits, upstream."""
    host, access = settings.http.host, settings.access
    own = is_own_machine(host)
    whose = "only this machine has access" if own else "others have access, within limits"
    unlimited = not own and access.rate_limits == "off" and not access.keys_required
    fault = f"{host}: others have access without rate limits" if unlimited else ""
    advice = "set [access] rate_limits to auto, or keys_required with keys_file"
    yield _judge("address", f"{host}: {whose}", fault, advice)
    yield from _check_keys(settings)
    if settings.upstream.url.startswith("http://"):
        text = "messages and the upstream's key are sent without encryption"
        yield Checked("upstream", "warning", text, "use https in the setting [upstream] url")


def _check_keys(settings: Settings) -> Iterator[Checked]:
    if not settings.access.keys_file:
        if settings.access.keys_required:
            advice = "name the file in the setting [access] keys_file"
            yield Checked("keys", "problem", "keys are required but there is no file", advice)
        return
    path = Path(settings.access.keys_file)
    try:
        count = len(read_keys(path))
        mode = path.stat().st_mode if path.exists() else 0
    except (KeyFileInvalid, OSError) as error:
        yield Checked("keys", "problem", str(error), "repair the file, or create new keys")
        return
    if mode & 0o077:
        advice = f"chmod 600 {path}"
        yield Checked("keys", "warning", f"{path} can be read or written by others", advice)
    elif not count:
        advice = f"tonlake key add NAME --keys {path}"
        yield Checked("keys", "warning", f"{path} has no key", advice)
    else:
        yield Checked("keys", "ok", f"{count} keys")


def check_node(db_dir: Path, lake_dir: Path | None) -> Iterator[Checked]:
    """Check a node's folder, and whether ``lake_dir`` belongs to it."""
    try:
        with closing(open_node(db_dir)) as source:
            first, last = source.first_mc_seqno(), source.last_mc_seqno()
            if not last:
                advice = "wait until the node has blocks"
                yield Checked("node", "problem", "it has no complete block", advice)
                return
            source.read_bundle(last)
            fault = None if lake_dir is None else _find_fault(source, lake_dir, Span(first, last))
    except (IngestError, OSError) as error:
        advice = "name the folder that holds archive, files and state"
        if isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError):
            advice = PERMIT
        yield Checked("node", "problem", str(error), advice)
        return
    yield Checked("node", "ok", f"complete masterchain blocks {first}..{last}")
    if fault is not None:
        advice = "name the node of this lake, or another lake"
        yield Checked("node and lake", "problem", fault, advice)
    elif lake_dir is not None:
        yield from _compare(lake_dir, first, last)


def _find_fault(source: BlockSource, lake_dir: Path, span: Span) -> str | None:
    """Return why a lake is not of the node's chain; None if it is, or there is no lake."""
    try:
        check_origin(source, lake_dir, read_state(lake_dir), span)
    except SourceError as error:
        return str(error)
    except LakeError:
        return None  # the checks of the lake report what is wrong with it
    return None


def _compare(lake_dir: Path, first: int, last: int) -> Iterator[Checked]:
    try:
        ours = open_snapshot(lake_dir, check_digests=False).last_mc_seqno
    except LakeError:
        return  # the checks of the lake report what is wrong with it
    if first > ours + 1:
        text = f"the lake ends with {ours} and the node begins with {first}: there will be a hole"
        advice = "ingest soon, keep more on the node (--archive-ttl), or fill it from packages"
        yield Checked("node and lake", "warning", text, advice)
    elif ours > last:
        text = f"the lake has {ours}, and the node ends with {last}"
        advice = "wait until the node has caught up; is it the node of this lake?"
        yield Checked("node and lake", "warning", text, advice)
    else:
        yield Checked("node and lake", "ok", f"{last - ours:,} blocks to ingest")


def check_lake(lake_dir: Path, settings: Settings, *, full: bool) -> Iterator[Checked]:
    """Check a lake; ``full`` compares every file with its digest."""
    try:
        name_root(lake_dir)
        snapshot = open_snapshot(lake_dir, check_digests=False)
        status = read_status(snapshot, read_commit(lake_dir, snapshot.number)[0])
        versions = compare_versions(snapshot, list_engines(settings.tvm))
    except LakeNotFound as error:
        yield Checked("lake", "problem", str(error), "tonlake ingest --node DIR --lake DIR")
        return
    except LakeMisplaced as error:
        yield Checked("lake", "problem", str(error), "mv DIR OTHER, and name that in --lake")
        return
    except PermissionError as error:
        yield Checked("lake", "problem", f"{error.filename}: {error.strerror}", PERMIT)
        return
    except (LakeError, OSError) as error:
        advice = "tonlake verify names all damage; restore the file, or ingest again"
        advice = "pip install --upgrade tonlake" if isinstance(error, LakeTooNew) else advice
        yield Checked("lake", "problem", str(error), advice)
        return
    text = f"masterchain blocks {status.first_mc_seqno}..{status.last_mc_seqno}, "
    text += f"{status.bytes:,} bytes, {status.snapshot:,} commits"
    yield Checked("lake", "ok", text)
    yield from _check_files(lake_dir, full=full)
    yield from _check_state(status, settings)
    yield from _check_versions(versions, status.unanswered_methods)
    yield from _check_room(lake_dir)


def _check_files(lake_dir: Path, *, full: bool) -> Iterator[Checked]:
    """Check the files: their digests if ``full``, else only that they exist with the right size."""
    if full:
        report = verify_lake(lake_dir)
        damage = [f"{one.file}: {one.reason}" for one in report.damage]
    else:
        snapshot = open_snapshot(lake_dir, check_digests=False)
        damage, barred = [], []
        for file in list_stored(snapshot.state.files):
            path = lake_dir / file.stored
            if not path.is_file():
                damage.append(f"{file.path}: missing")
            elif path.stat().st_size != file.bytes:
                damage.append(f"{file.path}: not the committed size")
            elif not os.access(path, os.R_OK):
                barred.append(file.path)
        if barred:
            text = f"{len(barred)} not readable: {barred[0]}"
            yield Checked("files", "problem", text, PERMIT)
            return
    if damage:
        advice = "restore the file from a copy, or ingest into a new folder"
        yield Checked("files", "problem", f"{len(damage)} damaged: {damage[0]}", advice)
    else:
        text = "all digests match" if full else "all present, sizes match (--full: digests)"
        yield Checked("files", "ok", text)


def _check_state(status: Status, settings: Settings) -> Iterator[Checked]:
    shown = ", ".join(f"{first}..{last}" for first, last in status.holes[:3])
    holes = f"{len(status.holes)}: {shown}" if status.holes else ""
    advice = "tonlake ingest with --range over the hole, from a node that has the blocks"
    yield _judge("holes", "none", holes, advice)
    if status.lookups.rows_missing > settings.lake.index_memory_rows:
        text = f"{status.lookups.rows_missing:,} transactions are not indexed"
        yield Checked("index", "warning", text, "tonlake rebuild index --lake DIR")
    files = sum(table.files for table in status.tables.values())
    if files > MANY_FILES:
        text = f"{files:,} files make queries slow"
        yield Checked("small files", "warning", text, "tonlake compact --lake DIR")
    late = find_lateness(status.lag, settings.follow.ready_lag_s, followed=False)
    if late is not None:
        advice = "look at the follower's log: tonlake ingest --follow"
        yield Checked("lag", "warning", late, advice)


def _check_versions(versions: Versions, unanswered: Sequence[Unanswered]) -> Iterator[Checked]:
    if versions.gap:
        advice = REMEDY if versions.network is not None else "restore the file from a copy"
        text = versions.gap.removesuffix(f": {REMEDY}")
        yield Checked("global version", "warning", text, advice)
    else:
        yield Checked("global version", "ok", describe_versions(versions))
    if unanswered:
        states = sum(each.states for each in unanswered)
        reason = unanswered[0].reason
        text = f"get-methods of {states:,} contract states could not be run: {reason}"
        advice = f"tonlake status lists them; {name_remedy(reason)}"
        yield Checked("get-methods", "warning", text, advice)


def _check_room(lake_dir: Path) -> Iterator[Checked]:
    free = shutil.disk_usage(lake_dir).free
    text = f"{free:,} bytes are free"
    little = f"only {text}" if free < FREE_BYTES else ""
    yield _judge("room", text, little, "free some space; without it commits fail")
    if not os.access(lake_dir, os.W_OK):
        advice = "fine for serving; ingest needs another user or more permissions"
        yield Checked("rights", "warning", "this user cannot write into the lake", advice)


EXIT_CODES = {"ok": 0, "problem": 1, "warning": 3}
_MARKS = {"ok": "ok      ", "problem": "PROBLEM ", "warning": "warning "}


@click.command("doctor")
@click.option(
    "--node",
    type=click.Path(path_type=Path, readable=False),
    envvar=NODE_VARIABLE,
    show_envvar=True,
    help="Database folder of a TON node.",
)
@make_lake_option(
    "lake_dir", click.Path(path_type=Path, readable=False), "Folder of a lake.", required=False
)
@click.option("--full", is_flag=True, help="Compare every file of the lake with its digest.")
@json_option
def doctor_command(*, node: Path | None, lake_dir: Path | None, full: bool, as_json: bool) -> None:
    """Check settings, machine, node and lake, and print advice; nothing is changed."""
    try:
        settings = read_settings(Settings)
    except LakeError as error:
        advice = "tonlake config lists all settings and where their values come from"
        findings = [Checked("settings", "problem", str(error), advice)]
    else:
        findings = [Checked("settings", "ok", "all are known and within bounds")]
        findings += [*check_machine(settings), *check_access(settings)]
        findings += check_node(node, lake_dir) if node is not None else ()
        findings += check_lake(lake_dir, settings, full=full) if lake_dir is not None else ()
    worst = worst_of(findings)
    if as_json:
        click.echo(msgspec.json.encode({"level": worst, "findings": findings}))
    else:
        for one in findings:
            click.echo(f"{_MARKS[one.level]} {one.subject}: {one.text}")
            if one.advice:
                click.echo(f"         -> {one.advice}")
    sys.exit(EXIT_CODES[worst])


commands: list[click.Command] = [doctor_command]
