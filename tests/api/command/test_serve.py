"""Commands around the API, run as users run them."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result

from tests.commands import list_commands, run, serving
from tonlake.ingest.source.node.source import open_node


def _lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def block_files(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A masterchain block of the demo node, and the shard blocks that it commits."""
    source = open_node(demo_node)
    folder = tmp_path_factory.mktemp("blocks")
    files = []
    for raw in source.read_bundle(119).blocks:
        files.append(folder / f"{raw.id.workchain}_{raw.id.seqno}.boc")
        files[-1].write_bytes(raw.data)
    source.close()
    return files


def test_every_package_has_its_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in ("ingest", "status", "verify", "sql", "serve", "decode", "demo", "config"):
        assert re.search(rf"^  {name} ", result.output, re.MULTILINE)
    for name in list_commands():
        assert run(name, "--help").exit_code == 0
    assert re.fullmatch(r"tonlake, version \d+\.\d+\.\d+\n", run("--version").output)


def _pack(path: Path, name: str, kind: bytes = tarfile.REGTYPE) -> Path:
    """Write an archive with one empty member, or a link to a folder of the system."""
    with (
        pa.output_stream(str(path), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc"
        tar.addfile(member)
    return path


def test_a_demo_of_no_node_says_so(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no archive")
    for archive, complaint in (
        (text, "cannot be unpacked"),
        (_pack(tmp_path / "other.tar.zst", "text"), "contains no node database"),
        (_pack(tmp_path / "out.tar.zst", "../out"), "cannot be unpacked as .tar.zst: ../out is"),
        (
            _pack(tmp_path / "link.tar.zst", "link", tarfile.SYMTYPE),
            "cannot be unpacked as .tar.zst: link is neither file nor folder",
        ),
    ):
        result = run("demo", "--archive", archive, "--lake", tmp_path / "lake", "--once")
        assert result.exit_code == 1
        assert f"{archive.name} {complaint}" in result.stderr


def test_a_block_gives_its_rows(block_files: list[Path], demo_facts: Path) -> None:
    facts = [
        json.loads(line)
        for line in (demo_facts / "expected-transactions.jsonl").read_text().splitlines()
    ]
    for file in block_files:
        result = run("decode", "block", file)
        assert (result.exit_code, result.stderr) == (0, "")
        rows = _lines(result)
        (block,) = [row for row in rows if row["table"] == "blocks"]
        is_master = block["workchain"] == -1
        assert {row["mc_seqno"] for row in rows} == {119 if is_master else None}
        wanted = [
            fact["hash"]
            for fact in facts
            if (fact["workchain"], fact["shard"], fact["block_seqno"])
            == (block["workchain"], block["shard"], block["seqno"])
        ]
        found = [row["hash"] for row in rows if row["table"] == "transactions"]
        assert sorted(found) == sorted(wanted)
        assert block["tx_count"] == len(wanted)
        for row in rows:
            if row["table"] == "messages":
                assert base64.b64decode(row["body"])[:4].hex() == "b5ee9c72"


@pytest.mark.parametrize("data", [b"", b"no block", bytes.fromhex("b5ee9c7201010101000200000000")])
def test_what_is_no_block_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.boc"
    file.write_bytes(data)
    result = run("decode", "block", file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: x.boc: ")


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_transactions_decode_line_by_line(
    block_files: list[Path], tmp_path: Path, compression: str | None, ask_v3: Any
) -> None:
    rows = [row for file in block_files for row in _lines(run("decode", "block", file))]
    transactions = [row for row in rows if row["table"] == "transactions"]
    lines = [json.dumps({"boc": row["boc"], "more": 1}) for row in transactions]
    file = tmp_path / "tx.jsonl"
    with pa.output_stream(str(file), compression=compression) as stream:
        stream.write("\n".join(lines).encode())
    result = run("decode", "tx", file, "--global-version", 11)
    assert (result.exit_code, result.stderr) == (0, "")
    for row, ours in zip(transactions, _lines(result), strict=True):
        (served,) = ask_v3(f"/api/v3/transactions?hash={row['hash']}").json()["transactions"]
        for name in ("account_state_before", "account_state_after"):
            served[name] = {"hash": served[name]["hash"]}
            ours[name] = {"hash": ours[name]["hash"]}
        del served["trace_id"]
        context = {"mc_block_seqno": None, "block_ref": None}
        assert ours == {**served, **context}


@pytest.fixture
def ask_v3(client: Any) -> Any:
    """Return the function that asks the demo lake."""
    return client.get


def test_a_bad_line_does_not_stop_the_others(block_files: list[Path], tmp_path: Path) -> None:
    rows = [row for file in block_files for row in _lines(run("decode", "block", file))]
    good = json.dumps({"boc": next(row["boc"] for row in rows if row["table"] == "transactions")})
    bad = [
        "nonsense",
        "{}",
        '{"boc": 5}',
        '{"boc": "***"}',
        '{"boc": "AAAA"}',
        '{"boc": "te6ccgEBAQEAAgAAAA=="}',
        '{"boc": "", "x": ' + "[" * 5000 + "}",
        "\u00ff",
    ]
    file = tmp_path / "tx.jsonl"
    file.write_text("\n".join([good, *bad, "", good]))
    result = run("decode", "tx", file)
    assert result.exit_code == 3
    found = _lines(result)
    assert found[0] == found[-1]
    assert "hash" in found[0]
    assert [item["line"] for item in found[1:-1]] == list(range(2, 2 + len(bad)))
    assert all(set(item) == {"error", "line"} for item in found[1:-1])
    assert found[4]["error"].startswith("Invalid base64")


def test_serve_prints_its_address_and_stops_on_sigterm(demo_lake: Path) -> None:
    with serving("--lake", demo_lake) as (address, server):
        assert server.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address)
        banner = [server.stdout.readline() for _ in range(3)]
        assert banner[0] == f"{address}/docs  API reference\n"
        connection = HTTPConnection(address.split("/")[2], timeout=120)
        for line in (f"{address}/", *banner):
            connection.request("GET", line.split()[0])
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True), line
        connection.request("GET", "/api/v3/masterchainInfo")
        assert json.load(connection.getresponse())["last"]["seqno"] == 238
        long = "&".join(f"address=0:{number:064x}" for number in range(2000))
        connection.request("GET", f"/api/v3/addressBook?{long}")
        assert len(json.load(connection.getresponse())) == 2000
        connection.close()
        server.send_signal(signal.SIGINT)
        assert server.wait(120) == 0


def test_a_second_ctrl_c_drops_clients_without_a_traceback(demo_lake: Path) -> None:
    with serving("--lake", demo_lake, stderr=subprocess.PIPE) as (address, server):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
            # A request whose body does not come keeps a stopping server waiting.
            client.sendall(b"POST /api/v3/message HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n")
            client.sendall(b"Expect: 100-continue\r\n\r\n")
            assert client.recv(99).startswith(b"HTTP/1.1 100 ")
            server.send_signal(signal.SIGINT)
            with suppress(ConnectionRefusedError, ConnectionResetError):
                while True:
                    socket.create_connection(("127.0.0.1", port)).close()
            server.send_signal(signal.SIGINT)
            _, stderr = server.communicate(timeout=120)
    assert server.returncode == 0
    assert "Traceback" not in stderr


def test_a_file_is_no_lake_to_serve_or_to_make(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    served = run("serve", "--lake", file, "--port", 0)
    assert (served.exit_code, "is a file" in served.stderr) == (2, True)


def test_a_port_in_use_is_named(demo_lake: Path, tmp_path: Path) -> None:
    result = run("serve", "--lake", demo_lake, "--host", "203.0.113.1", "--port", "1")
    assert result.exit_code == 1
    assert "cannot listen on 203.0.113.1, port 1" in result.stderr
    assert "--host is an address of this machine" in result.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments in (("serve", "--lake", demo_lake), ("demo", "--lake", tmp_path / "demo")):
            result = run(*arguments, "--port", port)
            assert (result.exit_code, result.stdout) == (1, "")
            assert f"port {port}: Address already in use; stop the process" in result.stderr
    assert not (tmp_path / "demo").exists()
    assert run("serve", "--lake", demo_lake, "--port", "70000").exit_code == 2


def test_transactions_are_read_from_a_pipe_as_well(block_files: list[Path], tmp_path: Path) -> None:
    rows = [row for file in block_files for row in _lines(run("decode", "block", file))]
    lines = [json.dumps({"boc": row["boc"]}) for row in rows if row["table"] == "transactions"]
    file, pipe = tmp_path / "tx.jsonl", tmp_path / "pipe"
    file.write_text("\n".join(lines))
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=[file.read_bytes()], daemon=True)
    writer.start()
    result = run("decode", "tx", pipe)
    assert (result.exit_code, result.stdout) == (0, run("decode", "tx", file).stdout)


def test_a_bad_setting_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tx.jsonl"
    file.write_text("")
    monkeypatch.setenv("TONLAKE_HTTP_PORT", "x")
    for arguments in (("decode", "tx", file), ("serve", "--lake", tmp_path)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "TONLAKE_HTTP_PORT" in result.stderr


@pytest.mark.parametrize("user", [0, 1000])
def test_serving_as_root_warns(demo_lake: Path, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("TONLAKE_ACCESS_KEYS_REQUIRED", "true")  # ends the command after this
    result = run("serve", "--lake", demo_lake, "--port", "0")
    assert result.exit_code == 1
    assert ("runs as root" in result.output) is (user == 0)


def test_a_folder_without_a_lake_is_not_served(demo_lake: Path, tmp_path: Path) -> None:
    (tmp_path / "main.lake").symlink_to(demo_lake, target_is_directory=True)
    for name in ("mian.lake", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        result = run("serve", "--lake", tmp_path / name, "--port", "0")
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"error: {tmp_path / name} holds no lake" in result.stderr
        assert "--wait" in result.stderr
        suggestion = f"did you mean {tmp_path / 'main.lake'}?"
        assert (suggestion in result.stderr) is (name == "mian.lake")


def test_a_lake_with_a_damaged_log_is_not_served(demo_lake: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(demo_lake / "_log", lake / "_log")
    (lake / "_log" / "1.json").write_text("{")
    for more in ((), ("--wait",), ("--pull", str(demo_lake))):
        result = run("serve", "--lake", lake, "--port", "0", *more)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error: lake file _log/1.json: it is not a log entry" in result.stderr


def test_a_lake_that_is_to_come_is_waited_for(tmp_path: Path) -> None:
    words = ("--lake", tmp_path, "--wait")
    with serving(*words, stderr=subprocess.PIPE) as (address, server):
        assert server.stderr is not None
        assert "waiting for the first commit" in server.stderr.readline()
        connection = HTTPConnection(address.split("/")[2], timeout=120)
        connection.request("GET", "/api/v3/masterchainInfo")
        assert connection.getresponse().status == 503
        connection.close()


def test_the_environment_names_lake_and_node(
    demo_lake: Path, demo_node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONLAKE_LAKE", str(demo_lake))
    monkeypatch.setenv("TONLAKE_NODE", str(demo_node))
    status = json.loads(run("status", "--json").stdout)
    assert status["ranges"] == [[1, 238]]
    assert "238" in run("sql", "select max(mc_seqno) from blocks").stdout
    found = {each["subject"] for each in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert {"node", "lake"} <= found
    made = run("ingest", "--lake", tmp_path / "lake", "--range", "1:2")
    assert (made.exit_code, "masterchain 1:2" in made.stdout) == (0, True)
    # A source on the command line counts, not the node of the environment; and serve needs none.
    packs = run("ingest", "--packs", tmp_path, "--lake", tmp_path / "other")
    assert "name one source" not in packs.stderr
    monkeypatch.setenv("TONLAKE_ACCESS_KEYS_REQUIRED", "true")  # ends the command after this
    assert run("serve", "--port", "0").exit_code == 1


def test_a_reported_transaction_has_the_destination_of_its_message(shared: Path) -> None:
    folder = shared / "data" / "reports" / "11-extin-addr-var"
    result = run("decode", "tx", folder / "tx.jsonl")
    expected = (folder / "README.txt").read_text().split("in_msg.destination ")[1].split()[0]
    assert json.loads(result.stdout)["in_msg"]["destination"] == expected
