"""Waiting for many requests at once, in any number of event loops, on one thread."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import threading
from contextlib import suppress

from specdec_rs._core import ReadyQueue
from specdec_rs.errors import ClosedError

__all__ = ["Pump", "Waiter"]


class Waiter:
    """A coroutine that waits for news of its request."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None

    def here(self) -> None:
        """Want to be woken in the running loop.

        News that came before this call wakes nobody: look for it between this and `wait`.
        """
        self.loop = asyncio.get_running_loop()

    async def wait(self) -> None:
        """Wait for news."""
        self._future = self.loop.create_future()
        try:
            await self._future
        finally:
            self._future = None

    def wake(self) -> None:
        """End `wait`, if that is in the running loop.

        It may have moved to another one since this call was posted; whoever moves looks for news.
        """
        future = self._future
        if (
            future is not None
            and future.get_loop() is asyncio.get_running_loop()
            and not future.done()
        ):
            future.set_result(None)


class Pump:
    """A thread that wakes those who wait for requests when there are news of these.

    Whoever drops its owner must `close` it: its thread keeps it.
    """

    def __init__(self) -> None:
        self.ready = ReadyQueue()
        self._waiters: dict[int, Waiter] = {}
        self._tags = itertools.count()
        self._closed = False
        self._process = os.getpid()
        # A daemon, so that the interpreter ends although nobody closed it; but it must be gone
        # before the interpreter is.
        self._thread = threading.Thread(target=self._run, name="specdec-ready", daemon=True)
        self._thread.start()
        atexit.register(self._leave)

    def tag(self) -> int:
        """A tag for a new request."""
        return next(self._tags)

    def add(self, tag: int, waiter: Waiter) -> None:
        """Wake `waiter` when there are news of the request of this tag.

        Raises:
            ClosedError: nobody would.
        """
        if self._closed:
            raise ClosedError("the engine is closed; load the model again")
        self._waiters[tag] = waiter

    def discard(self, tag: int) -> None:
        """Wake nobody for this tag any more."""
        self._waiters.pop(tag, None)

    def close(self) -> None:
        """End the thread as soon as it has told what the engine has announced."""
        self._closed = True
        self.ready.close()

    def _run(self) -> None:
        while tags := self.ready.wait():
            self._wake(tags)
        atexit.unregister(self._leave)

    def _wake(self, tags: list[int]) -> None:
        found: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        for tag in tags:
            waiter = self._waiters.get(tag)
            if waiter is not None:
                found.setdefault(waiter.loop, []).append(waiter)
        for loop, waiters in found.items():
            # A loop that was closed, or is broken, has nobody who could go on; others have.
            with suppress(Exception):
                loop.call_soon_threadsafe(_wake_all, waiters)

    def _leave(self) -> None:
        """End the thread and wait for it, at the end of the interpreter."""
        if os.getpid() == self._process:
            self.close()
            self._thread.join()


def _wake_all(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()
