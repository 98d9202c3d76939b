"""HTTP clients that query a service all the time, and compare its answers with the model."""

import json
import random
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.ingest.simulator.model import Model

PAUSE_S = 0.1
"""Between two questions of one client for the newest block."""

CURIOUS = 0.5
"""The part of new snapshots of which a client asks more."""

NEWEST = 20
GIVE_UP_S = 60.0
REFUSED = 503


class Readers:
    """Clients in threads: each requests the newest block and further data of the same snapshot."""

    def __init__(self, port: int, model: Model, count: int) -> None:
        """Take the port of the service; no request is sent yet."""
        self._port, self._model = port, model
        self.asked: Counter[str] = Counter()
        self.faults: list[str] = []
        self.lost = self.refused = 0
        self.tips: dict[int, str] = {}
        self.last = 0
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(at,)) for at in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _read(self, number: int) -> None:
        self._is_over.wait(PAUSE_S * number / len(self._threads))
        client, dice = Client(self._port), random.Random(number)  # noqa: S311 - no secret
        questions = (self._ask_newest, self._ask_transactions, self._ask_blocks)
        seen = 0
        while not self._is_over.wait(PAUSE_S):
            try:
                snapshot, tip = self._ask_tip(client, seen)
                if snapshot > seen and dice.random() < CURIOUS:
                    dice.choice(questions)(client, snapshot, tip, dice)
                seen = max(seen, snapshot)
            except Refused:
                self.refused += 1
            except (OSError, HTTPException):
                self.lost += 1
                client.close()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                self.faults.append(f"{type(error).__name__}: {error}")
        client.close()

    def _ask_tip(self, client: "Client", seen: int) -> tuple[int, str]:
        snapshot, body = client.ask("/api/v3/masterchainInfo")
        now_s = time.monotonic()
        tip = body["last"]["root_hash"]
        self.asked["newest block"] += 1
        if tip not in self._model:
            raise Wrong(f"snapshot {snapshot}: {tip} was never written")
        if snapshot < seen or self.tips.setdefault(snapshot, tip) != tip:
            raise Wrong(f"snapshot {snapshot} after {seen} ends with another block than before")
        self._model.note_served(tip, now_s)
        self.last = body["last"]["seqno"]
        return snapshot, tip

    def _ask_newest(self, client: "Client", snapshot: int, tip: str, _dice: random.Random) -> None:
        path = f"/api/v3/blocks?workchain=-1&sort=desc&limit={NEWEST}"
        body = client.ask_of(path, snapshot)
        got = [(one["root_hash"], one["seqno"]) for one in body["blocks"]]
        walk = self._model.walk_back(tip)
        wanted = [(name, one.seqno) for _, (name, one) in zip(range(NEWEST), walk, strict=False)]
        self._compare("newest blocks", got, wanted, snapshot)

    def _ask_transactions(
        self, client: "Client", snapshot: int, tip: str, dice: random.Random
    ) -> None:
        seqno = self._draw(tip, dice)
        path = f"/api/v3/transactionsByMasterchainBlock?seqno={seqno}&limit=1000"
        got = sorted(one["hash"] for one in client.ask_of(path, snapshot)["transactions"])
        wanted = sorted(self._model.find(tip, seqno).transactions)
        self._compare("transactions", got, wanted, snapshot)

    def _ask_blocks(self, client: "Client", snapshot: int, tip: str, dice: random.Random) -> None:
        seqno = self._draw(tip, dice)
        body = client.ask_of(f"/api/v3/masterchainBlockShards?seqno={seqno}", snapshot)
        got = sorted(one["root_hash"] for one in body["blocks"])
        self._compare("blocks", got, sorted(self._model.find(tip, seqno).blocks), snapshot)

    def _draw(self, tip: str, dice: random.Random) -> int:
        """Return a random seqno, or that of one of the newest blocks."""
        newest = next(self._model.walk_back(tip))[1].seqno
        return dice.randint(max(1, newest - dice.choice((NEWEST, newest))), newest)

    def _compare(self, what: str, got: object, wanted: object, snapshot: int) -> None:
        self.asked[what] += 1
        if got != wanted:
            raise Wrong(f"snapshot {snapshot}: {what} are {got}, not {wanted}")


class Wrong(Exception):
    """An answer differs from what was written."""


class Refused(Exception):
    """The service asks to retry later."""


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        """Take the port; the first request connects."""
        self._connection = HTTPConnection("127.0.0.1", port, timeout=GIVE_UP_S)

    def ask(self, path: str) -> tuple[int, Any]:
        """Return the number of the snapshot that answers, and the answer."""
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status == REFUSED and answer.headers["Retry-After"]:
            raise Refused(path)
        if answer.status != 200:
            raise Wrong(f"{path}: status {answer.status}: {body[:200]!r}")
        snapshot = answer.headers["X-Tonlake-Snapshot"]
        return int(snapshot.partition(":")[0]), json.loads(body)

    def ask_of(self, path: str, snapshot: int) -> Any:
        """Return the answer of one snapshot."""
        found, body = self.ask(f"{path}&snapshot={snapshot}")
        if found != snapshot:
            raise Wrong(f"{path}: snapshot {found} answers for {snapshot}")
        return body

    def close(self) -> None:
        """Close the connection; the next request reconnects."""
        self._connection.close()
