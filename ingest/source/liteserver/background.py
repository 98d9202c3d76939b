"""An event loop in a thread of its own, for callers that know nothing of event loops."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Any

T = TypeVar("T")


class Background:
    """Runs coroutines in one thread; connections stay alive between calls."""

    def __init__(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def start(self, asked: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin to run a coroutine."""
        return asyncio.run_coroutine_threadsafe(asked, self._loop)

    def wait(self, future: Future[T]) -> T:
        """Return what comes of it; an interrupted wait ends it, too."""
        try:
            return future.result()
        finally:
            future.cancel()

    def run(self, asked: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return what comes of it."""
        return self.wait(self.start(asked))

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End what still runs, do a last thing, and end the thread."""
        if self._loop.is_closed():
            return
        self.run(_cancel_others())
        self.run(last())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
