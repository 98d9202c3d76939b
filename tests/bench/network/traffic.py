"""Activity of a synthetic network: transfers of coins and jettons, swaps, each within a block.

The messages are those of the main network, with the bodies of wallets v3r2, v4r2 and v5r1, TEP-74
and STON.fi v2. The k-th account is used in proportion to 1/k: most accounts recur, and new ones
join all the time.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.bench.network.code import JETTON_MASTER, JETTON_WALLET
from tests.bench.network.contract import (
    ACTIVE,
    SUBWALLET,
    WALLET_CODES,
    JettonMaster,
    JettonWallet,
    Plain,
    Wallet,
    store_address,
)
from tests.bench.network.ledger import Out
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL, NOTIFY, TRANSFER
from tonlake.ingest.derive.action.protocol.stonfi import OK_CODE, PAY_TO, SWAP

if TYPE_CHECKING:
    from tests.bench.network.code import Codes
    from tests.bench.network.contract import Contract
    from tests.bench.network.ledger import Ledger, Sent
    from tonlake.ingest.decode.cell.build import CellBuilder

JETTONS, POOLS, FIRST_WALLETS = 12, 6, 20
NEW_SHARE = 0.25
"""Of receivers; with transfers in the mixture below one transaction of twelve meets a new one."""

SWAPS, JETTON_TRANSFERS, TRANSFERS = 4, 14, 24
COMMENTED, JETTONS_COMMENTED, INLINE = 1 / 2, 1 / 3, 1 / 3
"""Shares of transfers with a comment, and of the comments of jettons that need no cell.

Of plain jetton transfers 3 of 19 in recorded traces of the main network have one, on recorded test
networks 214 of 461 and 50 of 57; 80 of those 214 lie in the body itself.
"""

MINT, EXCESSES = 21, 0xD53276DB
SIGNED, SEND, VALID_S = 0x7369676E, 0x0EC3C86D, 60
COIN = 10**9
FIRST_JETTONS = 10**15

Payload = int | bytes | None
"""What follows jettons to their receiver: a cell, bytes in the body itself, or nothing."""


class Network:
    """All accounts and their activity block by block, determined by the seed."""

    def __init__(self, codes: Codes, seed: int = 1) -> None:
        """Create the first wallets, jettons, and the router of an exchange with its pools."""
        self._codes = codes
        self._dice = random.Random(seed)  # noqa: S311 - a repeatable draw
        self.wallets = [self._make_wallet() for _ in range(FIRST_WALLETS)]
        self._masters = [
            JettonMaster(
                codes.by_hash[JETTON_MASTER],
                self.wallets[number].address,
                codes.content,
                codes.by_hash[JETTON_WALLET],
            )
            for number in range(JETTONS)
        ]
        self._router = Plain(codes.plain, "router")
        self._pools = [Plain(codes.plain, f"pool {number}") for number in range(POOLS)]
        self._jettons: dict[tuple[int, int], JettonWallet] = {}
        self._holders: list[list[Wallet]] = [[] for _ in self._masters]
        self._known_holders: set[tuple[int, int]] = set()

    @property
    def dice(self) -> random.Random:
        """The random generator, which ledgers share."""
        return self._dice

    def begin(self, ledger: Ledger) -> None:
        """Deploy wallets, jettons and the exchange, and mint for owners and the router."""
        for wallet in self.wallets:
            self._ask(ledger, wallet, [])
        for contract in (self._router, *self._pools):
            (sent,) = self._ask(ledger, self.wallets[0], [Out(contract, COIN, init=True)])
            ledger.run(contract, sent, deploys=True)
        for number, master in enumerate(self._masters):
            admin = self.wallets[number]
            for owner in (admin, self._router):
                self._mint(ledger, number, admin, owner)
            self._hold(number, admin)
            if master.status != ACTIVE:
                raise ValueError("a jetton was not deployed")

    def act(self, ledger: Ledger) -> None:
        """Perform the activity of a block: the mixture, in random order."""
        kinds = [self._swap] * SWAPS + [self._transfer_jettons] * JETTON_TRANSFERS
        kinds += [self._transfer] * TRANSFERS
        self._dice.shuffle(kinds)
        for act in kinds:
            act(ledger)

    def _make_wallet(self) -> Wallet:
        version = self._dice.choice((0, 1, 1, 2, 2))
        code = self._codes.by_hash[WALLET_CODES[version]]
        return Wallet(code, version, self._dice.randbytes(32))

    def _draw(self, wallets: list[Wallet]) -> Wallet:
        return wallets[int(len(wallets) ** self._dice.random()) - 1]

    def _draw_receiver(self) -> Wallet:
        if self._dice.random() < NEW_SHARE:
            self.wallets.append(self._make_wallet())
            return self.wallets[-1]
        return self._draw(self.wallets)

    def _hold(self, number: int, owner: Wallet) -> None:
        """Draw an owner among those who have a jetton."""
        if (number, owner.address) not in self._known_holders:
            self._known_holders.add((number, owner.address))
            self._holders[number].append(owner)

    def _wallet_of(self, number: int, owner: Contract) -> JettonWallet:
        key = number, owner.address
        if key not in self._jettons:
            self._jettons[key] = JettonWallet(self._masters[number], owner.address)
        return self._jettons[key]

    def _ask(self, ledger: Ledger, wallet: Wallet, outs: list[Out]) -> list[Sent]:
        """Let a wallet's owner send messages through it."""
        body = self._write_order(ledger, wallet, outs)
        came = ledger.call_outside(wallet, body)
        wallet.count += 1
        return ledger.run(wallet, came, outs, deploys=wallet.status != ACTIVE)

    def _write_order(self, ledger: Ledger, wallet: Wallet, outs: list[Out]) -> int:
        """Return the signed body; TL-B by the version of the wallet."""
        cell, orders = ledger.sheet.cell, [ledger.write_message(None, out) for out in outs]
        signature = self._dice.randbytes(64)
        head = SUBWALLET << 64 | ledger.now + VALID_S << 32 | wallet.count
        if wallet.version == 2:  # v5r1: actions in a list, signed at the end
            actions = cell().end()
            for order in orders:
                action = cell().store_ref(actions).store_uint(SEND, 32).store_uint(3, 8)
                actions = action.store_ref(order).end()
            builder = cell().store_uint(SIGNED, 32).store_uint(head, 96)
            builder.store_maybe_ref(actions if orders else None).store_bit(0)
            return builder.store_bytes(signature).end()
        builder = cell().store_bytes(signature).store_uint(head, 96)
        if wallet.version:
            builder.store_uint(0, 8)
        for order in orders:
            builder.store_uint(3, 8).store_ref(order)
        return builder.end()

    def _transfer(self, ledger: Ledger) -> None:
        """Send coins, half of them with a comment."""
        sender, receiver = self._draw(self.wallets), self._draw_receiver()
        body = None
        if self._dice.random() < COMMENTED:
            body = ledger.sheet.cell().store_bytes(self._write_comment()).end()
        amount = self._dice.randrange(1, 1000) * COIN // 100
        out = Out(receiver, amount, body, bounce=receiver.status == ACTIVE)
        (sent,) = self._ask(ledger, sender, [out])
        ledger.run(receiver, sent)

    def _write_comment(self) -> bytes:
        """Return a comment in its layout: op-code 0, then the text."""
        return bytes(4) + f"order {self._dice.randrange(10**6)}".encode()

    def _write_payload(self, ledger: Ledger) -> Payload:
        """Return the forward payload of a jetton transfer: a comment or nothing."""
        if self._dice.random() >= JETTONS_COMMENTED:
            return None
        comment = self._write_comment()
        if self._dice.random() < INLINE:
            return comment
        return ledger.sheet.cell().store_bytes(comment).end()

    def _mint(self, ledger: Ledger, number: int, admin: Wallet, owner: Contract) -> None:
        """Let the administrator mint; the first mint also deploys the jetton."""
        master, cell = self._masters[number], ledger.sheet.cell
        taken = cell().store_uint(INTERNAL, 32).store_uint(0, 64).store_coins(FIRST_JETTONS)
        taken.store_uint(0, 4).store_coins(0).store_bit(0)
        order = store_address(cell().store_uint(MINT, 32).store_uint(0, 64), owner.address)
        order.store_coins(COIN // 5)
        inner = taken.end()
        order.store_ref(inner)
        deploys = master.status != ACTIVE
        (asked,) = self._ask(ledger, admin, [Out(master, COIN, order.end(), init=deploys)])
        master.count += FIRST_JETTONS
        wallet = self._wallet_of(number, owner)
        out = Out(wallet, COIN // 5, inner, init=True)
        (sent,) = ledger.run(master, asked, [out], deploys=deploys)
        wallet.count += FIRST_JETTONS
        ledger.run(wallet, sent, deploys=True)

    def _transfer_jettons(self, ledger: Ledger) -> None:
        """Send jettons: five messages, of which the last returns the excess coins."""
        number = int(JETTONS ** self._dice.random()) - 1
        sender, receiver = self._draw(self._holders[number]), self._draw_receiver()
        amount, payload = self._dice.randrange(1, 10**4), self._write_payload(ledger)
        (asked,) = self._ask(
            ledger, sender, [self._order(ledger, number, sender, receiver, amount, payload)]
        )
        self._move(ledger, asked, (number, sender, receiver, amount), sender, payload)
        self._hold(number, receiver)

    def _order(
        self,
        ledger: Ledger,
        number: int,
        sender: Contract,
        receiver: Contract,
        amount: int,
        payload: Payload,
    ) -> Out:
        """Return the message that asks a jetton wallet to transfer."""
        body = self._begin(ledger, TRANSFER).store_coins(amount)
        store_address(store_address(body, receiver.address), sender.address)
        body.store_bit(0).store_coins(1)
        self._end(body, payload)
        return Out(self._wallet_of(number, sender), COIN // 5, body.end())

    def _begin(self, ledger: Ledger, opcode: int) -> CellBuilder:
        query = self._dice.getrandbits(64)
        return ledger.sheet.cell().store_uint(opcode, 32).store_uint(query, 64)

    def _end(self, body: CellBuilder, payload: Payload) -> None:
        """Store forward_payload:(Either Cell ^Cell)."""
        body.store_bit(isinstance(payload, int))
        if isinstance(payload, int):
            body.store_ref(payload)
        elif payload is not None:
            body.store_bytes(payload)

    def _move(
        self,
        ledger: Ledger,
        asked: Sent,
        what: tuple[int, Contract, Contract, int],
        rest_to: Contract,
        payload: Payload = None,
    ) -> Sent:
        """Move jettons between wallets and notify the receiver; return the notification.

        A wallet receives the notification here; for other receivers it is still in transit.
        """
        number, sender, receiver, amount = what
        paying, taking = self._wallet_of(number, sender), self._wallet_of(number, receiver)
        body = self._begin(ledger, INTERNAL).store_coins(amount)
        store_address(store_address(body, sender.address), rest_to.address).store_coins(1)
        self._end(body, payload)
        paying.count = max(paying.count - amount, 0)
        (sent,) = ledger.run(paying, asked, [Out(taking, COIN // 8, body.end(), init=True)])
        notice = store_address(self._begin(ledger, NOTIFY).store_coins(amount), sender.address)
        self._end(notice, payload)
        outs = [Out(receiver, 1, notice.end(), bounce=False)]
        outs.append(Out(rest_to, COIN // 10, self._begin(ledger, EXCESSES).end(), bounce=False))
        taking.count += amount
        noticed, rest = ledger.run(taking, sent, outs, deploys=taking.status != ACTIVE)
        if isinstance(receiver, Wallet):
            ledger.run(receiver, noticed)
        ledger.run(rest_to, rest)
        return noticed

    def _swap(self, ledger: Ledger) -> None:
        """Swap jettons for others at a pool; the router holds and pays them."""
        first, second = self._dice.sample(range(JETTONS), 2)
        owner = self._draw(self._holders[first])
        amount, paid = self._dice.randrange(1, 10**4), self._dice.randrange(1, 10**4)
        pool, router = self._dice.choice(self._pools), self._router
        payload = ledger.sheet.cell().store_uint(SWAP, 32)
        store_address(payload, self._wallet_of(second, router).address)
        store_address(payload, owner.address)
        wish = payload.end()
        (asked,) = self._ask(
            ledger, owner, [self._order(ledger, first, owner, router, amount, wish)]
        )
        noticed = self._move(ledger, asked, (first, owner, router, amount), owner, wish)
        router.count += 1
        swap = self._begin(ledger, SWAP).store_coins(amount).end()
        (to_pool,) = ledger.run(router, noticed, [Out(pool, COIN // 10, swap)])
        pool.count += 1
        pay = self._begin(ledger, PAY_TO)
        for _ in range(3):
            store_address(pay, owner.address)
        order = pay.store_uint(OK_CODE, 32).end()
        (to_router,) = ledger.run(pool, to_pool, [Out(router, COIN // 12, order)])
        router.count += 1
        out = self._order(ledger, second, router, owner, paid, None)
        (asked,) = ledger.run(router, to_router, [out])
        self._move(ledger, asked, (second, router, owner, paid), owner)
        self._hold(second, owner)
