"""Benchmarks the classifier: transactions a second on one core, by size of the trace."""

import time

from tests.bench.figure import Figure, at_least
from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Trace
from tonlake.ingest.derive.action.protocol import jetton

STEPS = 4
"""Transactions of one jetton transfer: at both wallets, at the receiver, and of the excess."""
TRANSFERS = (1, 10, 100, 999)
LINEAR_SHARE = 0.5
"""A transaction of the largest trace may take twice as long as one of a trace of forty."""


def measure_classifier(*, quick: bool) -> list[Figure]:
    """Return speeds for traces of 5 to 4,000 transactions."""
    seconds = 0.3 if quick else 3.0
    figures = []
    speeds = {count: _measure(count, seconds) for count in TRANSFERS}
    for count, traces_per_s in speeds.items():
        transactions = 1 + STEPS * count
        per_s = traces_per_s * transactions
        targets = {}
        if count == TRANSFERS[-1]:
            middle = TRANSFERS[1]
            targets = {"value": at_least(speeds[middle] * (1 + STEPS * middle) * LINEAR_SHARE)}
        figures.append(
            Figure(
                area="actions",
                name=f"traces of {transactions:,} transactions",
                unit="transactions/s",
                value=per_s,
                targets=targets,
                note=f"{traces_per_s:,.1f} traces/s",
            )
        )
    return figures


def make_scene(transfers: int) -> Scene:
    """Return a trace of a wallet that sends jettons to many others."""
    scene = Scene()
    owner, master = account("owner"), account("master")
    wallet = scene.know_wallet(account("wallet"), owner, master)
    root = scene.external(owner)
    for number in range(transfers):
        receiver, at = account(f"receiver {number}"), account(f"wallet {number}")
        body = Cell(jetton.TRANSFER).uint(number, 64).coins(1).address(receiver).address(owner)
        inner = Cell(jetton.INTERNAL).uint(number, 64).coins(1).address(owner).address(owner)
        step = root.send(wallet, body.uint(0, 1).coins(1).uint(0, 1))
        step = step.send(scene.know_wallet(at, receiver, master), inner.coins(1).uint(0, 1))
        step.send(receiver, opcode=jetton.NOTIFY)
        step.send(owner, opcode=0xD53276DB)
    return scene


def _measure(transfers: int, seconds: float) -> float:
    """Return the traces classified per second of CPU, with bodies decoded each time."""
    scene = make_scene(transfers)
    interfaces = Interfaces(scene.facts)
    count, spent = 0, 0.0
    while spent < seconds:
        trace = scene.trace()
        _forget(trace)
        begun = time.process_time()
        actions = classify(trace, interfaces).actions
        spent += time.process_time() - begun
        count += 1
        if len(actions) != transfers:
            raise RuntimeError(f"{len(actions)} actions of {transfers} transfers")
    return count / spent


def _forget(trace: Trace) -> None:
    """Drop the bodies decoded by an earlier run."""
    for transaction in trace.transactions:
        if transaction.in_msg is not None:
            transaction.in_msg.__dict__.pop("content", None)
