"""Ctrl-C while the main thread is inside TensorFlow.

Python runs a signal handler between two bytecodes, so a main thread that is blocked in `session.run` never comes to it.
`signal.set_wakeup_fd` lets the interpreter's C code write the signal's number to a socket at once; a thread that reads
the socket can then free the main thread. The file descriptor is one for the whole process: it is set while anybody
listens, what was set before is told as well, and is put back at the end.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable

_lock = threading.Lock()
_listeners: list[Callable[[], None]] = []
_watcher: _Watcher | None = None


def listen(callback: Callable[[], None]) -> bool:
    """Call ``callback`` in another thread whenever SIGINT arrives, until `forget` is called with it.

    Returns:
        False, and nothing is done, when called outside of the main thread: only there can a signal be waited for.
    """
    global _watcher
    if threading.current_thread() is not threading.main_thread():
        return False
    with _lock:
        if _watcher is None:
            _watcher = _Watcher()
        _listeners.append(callback)
    return True


def forget(callback: Callable[[], None]) -> None:
    """Stop calling ``callback``; with the last one, the process is left as it was found."""
    global _watcher
    with _lock:
        if callback in _listeners:
            _listeners.remove(callback)
        watcher = None
        # The descriptor can only be put back by the main thread; elsewhere the watcher stays for the next pipeline.
        if not _listeners and threading.current_thread() is threading.main_thread():
            watcher, _watcher = _watcher, None
    if watcher is not None:
        watcher.close()


class _Watcher:
    """Owns the socket pair and the thread that reads it."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._previous = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="tfqueue-interrupts", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            numbers = self._reader.recv(64)
            if not numbers or b"\0" in numbers:  # no signal has the number 0: the word to end
                return
            if self._previous != -1:  # an event loop was listening before
                with contextlib.suppress(OSError):
                    socket_of_others = socket.socket(fileno=self._previous)
                    try:
                        socket_of_others.send(numbers)
                    finally:
                        socket_of_others.detach()
            if signal.SIGINT in numbers:
                with _lock:
                    listeners = list(_listeners)
                for listener in listeners:
                    listener()

    def close(self) -> None:
        current = signal.set_wakeup_fd(self._previous)
        if current != self._writer.fileno():  # somebody has set theirs since, and keeps it
            signal.set_wakeup_fd(current)
        with contextlib.suppress(OSError):
            self._writer.send(b"\0")
        self._thread.join()
        self._reader.close()
        self._writer.close()
