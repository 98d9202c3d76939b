"""Lines of recorded traces."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.ingest.derive.action.protocol.test_jetton import MASTER, OWNER, RECEIVER, send_jettons
from tests.ingest.derive.action.scene import Scene
from tonlake.ingest.command.action import read_traces
from tonlake.ingest.derive.action.model import Message, Transaction
from tonlake.ingest.errors import IngestError


def write_message(message: Message | None, *, with_opcode: bool) -> dict[str, Any] | None:
    if message is None:
        return None
    written = {
        "msg_hash": base64.b64encode(message.msg_hash).decode(),
        "source": message.source,
        "destination": message.destination,
        "value": message.value,
        "created_lt": message.created_lt,
        "created_at": message.created_at,
        "bounce": message.bounce,
        "body_boc": base64.b64encode(message.boc or b"").decode(),
    }
    if with_opcode:
        signed = None if message.opcode is None else message.opcode - (message.opcode >> 31 << 32)
        written["opcode"] = signed
    return written


def write_transaction(transaction: Transaction, *, with_opcode: bool) -> dict[str, Any]:
    return {
        "hash": base64.b64encode(transaction.tx_hash).decode(),
        "account": transaction.account,
        "lt": transaction.lt,
        "now": transaction.now,
        "mc_block_seqno": transaction.mc_seqno,
        "orig_status": transaction.orig_status,
        "end_status": transaction.end_status,
        "descr": "ord",
        "aborted": transaction.aborted,
        "in_msg": write_message(transaction.in_msg, with_opcode=with_opcode),
        "out_msgs": [
            write_message(message, with_opcode=with_opcode) for message in transaction.out_msgs
        ],
    }


@pytest.mark.parametrize("with_opcode", [True, False])
def test_a_line_shows_the_actions_of_the_trace(tmp_path: Path, *, with_opcode: bool) -> None:
    scene = Scene()
    send_jettons(scene.external(OWNER)).send(OWNER, opcode=0xD53276DB)
    line = {
        "trace_key": "mine",
        "transactions": [
            write_transaction(each, with_opcode=with_opcode) for each in scene.trace().transactions
        ],
        "interfaces": scene.facts,
    }
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(line) + "\n")
    answer = run("classify", path)
    assert answer.exit_code == 0, answer.output
    shown = json.loads(answer.output)
    assert (shown["trace_key"], shown["state"]) == ("mine", "ok")
    (action,) = shown["actions"]
    assert (action["type"], action["success"]) == ("jetton_transfer", True)
    assert (action["destination"], action["asset"]) == (RECEIVER, MASTER)
    assert action["trace_id"] == base64.b64encode(scene.trace().trace_id).decode()


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"transactions": []}'])
def test_a_line_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(text)
    with pytest.raises(IngestError, match=r"traces\.jsonl, line 1: "):
        list(read_traces(path))
    assert run("classify", path).exit_code == 1
