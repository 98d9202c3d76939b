"""Typical requests to a service: paths of both API versions, with values from a lake."""

import random
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

SHARES: dict[str, int] = {
    "/api/v3/masterchainInfo": 10,
    "/api/v2/getMasterchainInfo": 5,
    "/api/v3/transactions?hash={transaction}": 10,
    "/api/v3/transactions?account={account}&limit=20": 8,
    "/api/v3/transactions?account={account}&limit=20&end_lt={lt}": 2,
    "/api/v3/transactions?mc_seqno={block}&limit=100": 1,
    "/api/v2/getTransactions?address={account}&limit=10": 8,
    "/api/v2/getTransactions?address={account}&limit=10&lt={lt}&hash={transaction}": 3,
    "/api/v3/transactionsByMessage?msg_hash={message}": 4,
    "/api/v3/messages?msg_hash={message}": 5,
    "/api/v3/messages?opcode={opcode}&limit=20": 1,
    "/api/v3/traces?tx_hash={transaction}": 5,
    "/api/v3/traces?account={account}&limit=10": 1,
    "/api/v3/actions?tx_hash={transaction}": 3,
    "/api/v3/actions?account={account}&limit=20": 2,
    "/api/v3/accountStates?address={account}": 7,
    "/api/v3/walletStates?address={account}": 1,
    "/api/v2/getAddressInformation?address={account}": 6,
    "/api/v2/getAddressBalance?address={account}": 4,
    "/api/v3/addressBook?address={account}": 4,
    "/api/v3/transactionsByMasterchainBlock?seqno={block}&limit=20": 3,
    "/api/v3/blocks?workchain=-1&limit=10": 2,
    "/api/v3/jetton/wallets?owner_address={account}&limit=10": 2,
    "/api/v3/jetton/transfers?owner_address={account}&limit=10": 1,
    "/api/v3/nft/items?owner_address={account}&limit=10": 2,
}
"""Paths by the number of requests in a hundred."""


class Mixture:
    """An endless stream of paths, the same for the same lake and seed."""

    def __init__(self, lake_dir: Path, seed: int, shares: dict[str, int] = SHARES) -> None:
        """Read the values for requests from the newest snapshot."""
        self._shares = shares
        with connect(open_snapshot(lake_dir)) as rows:
            self._transactions = rows.sql(
                "select workchain, account, lt, hash from transactions order by all"
            ).fetchall()
            self._messages = rows.sql("select msg_hash from messages order by all").fetchall()
            self._opcodes = rows.sql(
                "select distinct opcode from messages where opcode is not null order by all"
            ).fetchall()
            self._blocks = [
                seqno
                for (seqno,) in rows.sql(
                    "select distinct mc_seqno from blocks order by all"
                ).fetchall()
            ]
        self._dice = random.Random(seed)  # noqa: S311 - a repeatable choice

    def paths(self) -> Iterator[str]:
        """Yield paths; busy accounts occur more often, as in reality."""
        patterns, shares = list(self._shares), list(self._shares.values())
        while True:
            for pattern in self._dice.choices(patterns, shares, k=100):
                workchain, account, lt, transaction = self._dice.choice(self._transactions)
                yield pattern.format(
                    transaction=_encode(transaction),
                    message=_encode(self._dice.choice(self._messages)[0]),
                    opcode=f"0x{self._dice.choice(self._opcodes)[0] & 0xFFFFFFFF:08x}",
                    account=f"{workchain}:{account.hex()}",
                    lt=lt,
                    block=self._dice.choice(self._blocks),
                )


def _encode(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode()
