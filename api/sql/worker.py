"""Runs one statement in a separate process: ``python -m tonlake.api.sql.worker``.

Reads a job from standard input, opens the snapshot, drops its privileges, reports that it is ready,
and writes one line of JSON (``AnswerHead``) and the answer. Its output is untrusted after that.

A statement must not reveal where the lake is on this machine. DuckDB shows the paths that it may
read among its settings, and its name resolution cannot be restricted, so the whole text is searched
for these names, string constants included, as a string may name a table. Functions that run text as
SQL would circumvent that and are refused, too.
"""

import os
import re
import sys
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa

from tonlake.api.errors import SqlUnavailable
from tonlake.api.request.table_format import JSON, WRITERS
from tonlake.api.sql.sandbox import Bounds, confine
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.errors import SignatureInvalid
from tonlake.lake.duck.answer import ENCODER, ask, naming_the_fault, plain_rows
from tonlake.lake.duck.body_table import add_tables, name_views
from tonlake.lake.duck.connection import connect
from tonlake.lake.duck.silence import list_notes
from tonlake.lake.errors import LakeCorrupt, LakeError, QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.settings import LakeSettings
from tonlake.lake.system import name_folder_of_process

_SETTINGS = re.compile(
    r"current_setting|duckdb_settings|pg_settings|allowed_paths|allowed_directories"
    r"|duckdb_secrets|which_secret|query_table|json_execute_serialized_sql|json_serialize_plan",
    re.IGNORECASE,
)
_RUNNING = "query"
"""Table function that runs its argument as a statement."""


def check_hidden(query: str) -> None:
    """Raise QueryError if a statement names a setting, or a function that runs text as SQL."""
    found = _SETTINGS.search(query)
    name = found[0] if found else None
    data, tokens = query.encode(), duckdb.tokenize(query)
    ends = [*(at for at, _ in tokens[1:]), len(data)]
    kinds = (duckdb.token_type.identifier, duckdb.token_type.keyword)
    for (at, kind), end in zip(tokens, ends, strict=True):
        words = data[at:end].decode(errors="replace").split() if kind in kinds else []
        if words and words[0].strip('"').lower() == _RUNNING:
            name = name or _RUNNING
    if name is not None:
        raise QueryError(f"{name} is not available here: it could show settings of the service")


class Job(msgspec.Struct, frozen=True):
    """A statement, the snapshot to run it on, and limits and format of the answer."""

    lake_dir: str
    snapshot: int
    damaged: tuple[tuple[str, str, str], ...]
    """Damaged data files, which must not be read: file, reason, advice."""

    query: str
    signatures: tuple[str, ...]
    form: str
    max_rows: int
    max_bytes: int
    memory_mib: int
    lake: LakeSettings
    bounds: Bounds


class AnswerHead(msgspec.Struct, frozen=True):
    """Precedes an answer: its row count and whether it is complete, or an error."""

    error: str | None = None
    rows: int = 0
    complete: bool = True
    warnings: tuple[str, ...] = ()


READY = b"ready\n"
"""The process is confined; the timeout of the statement begins."""

_MEMORY_SHARE = 0.75
"""DuckDB's share of the memory limit, so that its own limit takes effect first."""


_EVERY_TYPE = """
    select 1::decimal(38, 2), 1::hugeint, 1::double, 'a', 'a'::blob, true, uuid(),
        now(), now()::timestamp, today(), localtime, [1], {'a': 1}, map {'a': 1}, null, bit '01',
        'a'::enum ('a', 'b')
"""
"""One value of every type that all formats can hold."""


def answer_job(job: Job) -> tuple[AnswerHead, bytes]:
    """Open the snapshot, confine this process and run the statement.

    Raises LakeError if the lake is damaged or the statement is invalid, SignatureInvalid if a
    signature is invalid, SqlUnavailable if the process cannot be confined.
    """
    lake_dir = name_folder_of_process()  # DuckDB shows the paths that it may read
    damage = [LakeCorrupt(*each) for each in job.damaged]
    snapshot = Snapshot(lake_dir, read_state(lake_dir, job.snapshot), damage)
    memory_mib = max(64, int(job.memory_mib * _MEMORY_SHARE))
    settings = msgspec.structs.replace(job.lake, duckdb_memory_mib=memory_mib)
    statement = name_views(job.query, job.signatures)
    connection = connect(snapshot, settings, statement=statement)
    # Writing every type in every format loads all modules while files can be opened.
    every_type = connection.sql(_EVERY_TYPE).to_arrow_table()
    for form in (JSON, *WRITERS):
        write_answer(every_type, form, 0, complete=True)
    if job.signatures:  # what they need reads files, so before confinement
        load_scheme()
        pa.array([])  # looks for pandas
    parquet = ([file for file in files if not file.pack] for files in snapshot.files.values())
    paths = (files[0].path for files in parquet if files)
    # DuckDB opens a file by its real path, which an unprivileged user may not reach.
    confine(job.bounds, [(lake_dir / path).resolve() for path in paths])
    _send(READY)
    check_hidden(job.query)
    misfits = add_tables(connection, read_tables(job.signatures))
    reader = ask(connection, snapshot, job.query)
    with naming_the_fault(snapshot):
        table, complete = take_rows(reader, job.max_rows)
        body = write_answer(table, job.form, job.snapshot, complete=complete)
    warnings = (*list_notes(snapshot, job.query), *misfits.warnings())
    head = AnswerHead(rows=table.num_rows, complete=complete, warnings=warnings)
    if len(body) > job.max_bytes:
        text = f"the answer has {len(body):,} bytes, more than {job.max_bytes:,}: select less"
        return AnswerHead(error=text), b""
    return head, body


def take_rows(reader: pa.RecordBatchReader, most: int) -> tuple[pa.Table, bool]:
    """Return up to ``most`` rows, and whether these are all."""
    batches, count = [], 0
    for batch in reader:
        batches.append(batch)
        count += batch.num_rows
        if count > most:
            break
    table = pa.Table.from_batches(batches, reader.schema)
    return table.slice(0, most), count <= most


def write_answer(table: pa.Table, form: str, snapshot: int, *, complete: bool) -> bytes:
    """Serialise the rows; JSON includes column names, types and the snapshot number."""
    if form != JSON:
        return WRITERS[form](table.to_reader())
    return ENCODER.encode(
        {
            "columns": [{"name": field.name, "type": str(field.type)} for field in table.schema],
            "rows": list(plain_rows(table.to_reader())),
            "row_count": table.num_rows,
            "complete": complete,
            "snapshot": snapshot,
        }
    )


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main() -> None:
    """Run the job on standard input."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    os.environ["HOME"] = "/"  # shown in DuckDB's settings
    try:
        os.chdir(job.lake_dir)
        head, body = answer_job(job)
    except (LakeError, SignatureInvalid, SqlUnavailable) as error:
        text = str(error)
        for place in (Path(job.lake_dir).resolve(), job.lake_dir, name_folder_of_process()):
            text = text.replace(str(place), "<lake>")
        head, body = AnswerHead(error=text), b""
    except MemoryError:
        head, body = AnswerHead(error="the statement needs more memory than is allowed"), b""
    _send(msgspec.json.encode(head) + b"\n" + body)


if __name__ == "__main__":
    main()
