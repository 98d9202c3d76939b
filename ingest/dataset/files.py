"""Files of the public data set by table and UTC day: a folder, object storage or a web server.

A table's folder has one folder per day, ``date=2026-11-21`` with any key, or the day alone, as
``2026-11-21`` or ``20261121``. Object storage is asked without an account unless the environment
has one; of a web server, Amazon's or one that lists folders as HTML, files are fetched whole.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.ingest.errors import SourceError
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.snapshot import parse_days
from tonlake.lake.storage.storage import WebFolder, is_web, open_storage

_BLOCKS = {
    "int": "workchain shard seqno mc_block_seqno global_id version flags gen_utime start_lt end_lt"
    " validator_list_hash_short gen_catchain_seqno min_ref_mc_seqno prev_key_block_seqno vert_seqno"
    " master_ref_seqno tx_count",
    "bool": "after_merge before_split after_split want_merge want_split key_block vert_seqno_incr",
    "text": "root_hash file_hash rand_seed created_by",
}
_TRANSACTIONS = {
    "int": "lt block_shard block_seqno mc_block_seqno prev_trans_lt now total_fees"
    " storage_fees_collected storage_fees_due credit_due_fees_collected credit compute_gas_fees"
    " compute_gas_used compute_gas_limit compute_gas_credit compute_mode compute_exit_code"
    " compute_exit_arg compute_vm_steps action_total_fwd_fees action_total_action_fees"
    " action_result_code action_result_arg action_tot_actions action_spec_actions"
    " action_skipped_actions action_msgs_created action_tot_msg_size_cells"
    " action_tot_msg_size_bits bounce_msg_size_cells bounce_msg_size_bits bounce_req_fwd_fees"
    " bounce_msg_fees bounce_fwd_fees split_info_cur_shard_pfx_len split_info_acc_split_depth",
    "bool": "aborted destroyed credit_first is_tock installed compute_skipped compute_success"
    " compute_msg_state_used compute_account_activated action_success action_valid"
    " action_no_funds",
    "text": "account hash prev_trans_hash orig_status end_status account_state_hash_before"
    " account_state_hash_after descr storage_status_change skipped_reason"
    " compute_vm_init_state_hash compute_vm_final_state_hash action_status_change"
    " action_action_list_hash bounce split_info_this_addr split_info_sibling_addr",
}
_MESSAGES = {
    "int": "tx_now value fwd_fee ihr_fee created_lt created_at opcode import_fee",
    "bool": "ihr_disabled bounce bounced",
    "text": "tx_hash msg_hash direction source destination body_hash init_state_hash",
    "bytes": "body_boc init_state_boc",
}
_STATES = {
    "int": "balance timestamp last_trans_lt",
    "text": "account hash account_status last_trans_hash frozen_hash data_hash code_hash",
    "bytes": "data_boc code_boc",
}

FORM: dict[str, dict[str, str]] = {
    table: {name: kind for kind, names in kinds.items() for name in names.split()}
    for table, kinds in (
        ("blocks", _BLOCKS),
        ("transactions", _TRANSACTIONS),
        ("messages", _MESSAGES),
        ("account_states", _STATES),
    )
}
"""The columns that are read of each table, each with its kind."""

TIMES = {
    "blocks": "gen_utime",
    "transactions": "now",
    "messages": "tx_now",
    "account_states": "timestamp",
}
"""The column whose UTC day names the folder of a row."""

_BYTES = (
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
    pa.types.is_fixed_size_binary,
)
_KINDS: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "int": (pa.types.is_integer, pa.types.is_decimal),
    "bool": (pa.types.is_boolean,),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, *_BYTES),
    "bytes": _BYTES,
}
"""Types with the values of a kind; a text can be stored as bytes, if it is UTF-8."""


def _is_of_kind(found: pa.DataType, kind: str) -> bool:
    found = found.value_type if pa.types.is_dictionary(found) else found
    return any(is_such(found) for is_such in (pa.types.is_null, *_KINDS[kind]))


def check_columns(file: str, table: str, found: pa.Schema) -> None:
    """Compare the columns of a file with the form; columns that are not read may be there."""
    form = FORM[table]
    lacking = [name for name in form if name not in found.names]
    other = [
        f"{name} is {found.field(name).type} and not {kind}"
        for name, kind in form.items()
        if name in found.names and not _is_of_kind(found.field(name).type, kind)
    ]
    if lacking or other:
        unknown = [name for name in found.names if name not in form]
        parts = [f"it lacks {', '.join(lacking)}"] if lacking else []
        parts += other
        if lacking and unknown:
            parts.append(f"it has {', '.join(unknown)}, which are not read")
        raise SourceError(
            f"{file} has other columns than {table} of the data set: " + "; ".join(parts)
        )


_DAY = re.compile(r"(?:\w+=)?(\d{4})-?(\d\d)-?(\d\d)")
_LINK = re.compile(r'<a\s[^>]*href="([^"?#]+)"', re.IGNORECASE)
_AMAZON = re.compile(r"https://(?:([\w.-]+)\.)?s3[.-][\w-]+\.amazonaws\.com/(.*)")
_ENDING = ".parquet"
_BATCH_ROWS = 65_536


def list_days(text: str) -> list[date]:
    """Return the UTC days of ``2026-11-01..2026-11-03``, both ends included, or of one day."""
    first, last = [day and date.fromisoformat(day) for day in parse_days(text)]
    if not first or not last:
        raise ValueError(f"{text!r} lacks an end: write both days")
    return [first + timedelta(days) for days in range((last - first).days + 1)]


class DataSet:
    """The files of a data set by table and day."""

    def __init__(self, place: Path | str) -> None:
        self.name = str(place).rstrip("/")
        self.failure: SourceError | None = None
        """Why the rows that were read last ended early."""
        amazon = _AMAZON.fullmatch(self.name)
        if amazon is not None:
            place = "s3://" + "/".join(filter(None, amazon.groups()))
        self._web = WebFolder(str(place)) if is_web(str(place)) else None
        self._storage = None if self._web else open_storage(place, public=True)
        self._files = {table: self._list_table(table) for table in FORM}
        for table, days in self._files.items():
            if not days:
                raise SourceError(f"{self.name} has no day of {table}: name the folder above it")

    def close(self) -> None:
        """Close all connections."""
        if self._web is not None:
            self._web.close()

    def list_lacking(self, day: date) -> list[str]:
        """Return the tables that lack a day."""
        return [table for table, days in self._files.items() if day not in days]

    def read(self, table: str, days: Iterable[date], times: Range) -> pa.RecordBatchReader:
        """Return the columns that are read of a table's rows, days after days."""
        paths = [path for day in days for path in self._files[table].get(day, ())]
        batches = self._note_failure(self._read_files(table, paths, times))
        return pa.RecordBatchReader.from_batches(_choose_schema(table), batches)

    def _note_failure(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the error of a file: of an error in a stream, Arrow passes on a traceback."""
        try:
            yield from batches
        except SourceError as error:
            self.failure = error
            raise

    def _list_table(self, table: str) -> dict[date, list[str]]:
        found: dict[date, list[str]] = {}
        for path in sorted(self._list_files(table)):
            match = _DAY.fullmatch(path.split("/")[1])
            if match is not None and path.endswith(_ENDING):
                with suppress(ValueError):  # a folder like date=2026-13-40
                    found.setdefault(date(*map(int, match.groups())), []).append(path)
        return found

    def _list_files(self, table: str) -> Iterable[str]:
        if self._storage is not None:
            return self._storage.list_files([table])
        folders = (f"{table}/{name}" for name in self._list_links(table))
        return [f"{folder}/{name}" for folder in folders for name in self._list_links(folder)]

    def _list_links(self, folder: str) -> list[str]:
        assert self._web is not None  # noqa: S101 - the caller has checked it
        try:
            page = b"".join(self._web.chunks(f"{folder}/"))
        except FileNotFoundError:
            return []
        links = map(unquote, _LINK.findall(page.decode(errors="replace")))
        return [name.strip("/") for name in links if not name.startswith((".", "/", "http"))]

    def _read_files(
        self, table: str, paths: Iterable[str], times: Range
    ) -> Iterator[pa.RecordBatch]:
        schema = _choose_schema(table)
        for path in paths:
            name = f"{self.name}/{path}"
            try:
                with self._open(path) as file:
                    check_columns(name, table, file.schema_arrow)
                    groups = _pick_groups(file.metadata, TIMES[table], times)
                    for batch in file.iter_batches(_BATCH_ROWS, groups, schema.names):
                        rows = pa.table(batch.select(schema.names)).cast(schema)
                        yield from rows.combine_chunks().to_batches()
            except (pa.ArrowException, OSError) as error:
                raise SourceError(f"{name} cannot be read: {error}") from error

    @contextmanager
    def _open(self, path: str) -> Iterator[pq.ParquetFile]:
        if self._storage is not None:
            with self._storage.open(path) as stream:
                yield pq.ParquetFile(stream, pre_buffer=not self._storage.is_local)
            return
        assert self._web is not None  # noqa: S101 - either is there
        with tempfile.TemporaryFile() as copy:
            copy.writelines(self._web.chunks(path))
            copy.seek(0)
            yield pq.ParquetFile(copy)


_TYPES = {"int": pa.int64(), "bool": pa.bool_(), "text": pa.string(), "bytes": pa.binary()}


def _choose_schema(table: str) -> pa.Schema:
    return pa.schema([(name, _TYPES[kind]) for name, kind in FORM[table].items()])


def _pick_groups(metadata: pq.FileMetaData, column: str, times: Range) -> list[int]:
    at = metadata.schema.names.index(column)
    picked = []
    for group in range(metadata.num_row_groups):
        bounds = metadata.row_group(group).column(at).statistics
        is_known = bounds is not None and bounds.has_min_max
        if not is_known or (bounds.min <= times[1] and times[0] <= bounds.max):
            picked.append(group)
    return picked
