"""Files that appear whole or not at all.

The bytes go to a hidden temporary in the same folder; only ``commit`` gives it its name, after a flush and an
fsync. The temporary stays locked while its writer lives, so that a later writer can tell the remains of a
killed process from the work of a living one, and removes only the former.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import os
import secrets
from io import FileIO

from tfqueue.errors import RecordError
from tfqueue.records.paths import Path, fspath

_TOKEN_BYTES = 4


class AtomicFile:
    """A file under construction.

    Args:
        path: Where the file will appear.
        overwrite: Whether a file that is there may be replaced.
        clean: Whether the remains of killed writers of the same path are removed first.

    Attributes:
        path: Where the file will appear, as it was given.
        temporary: The name under which the bytes lie until ``commit``.
        file: The temporary, open for writing without a buffer.

    Raises:
        RecordError: The folder does not exist or cannot be written, or the file exists and ``overwrite`` is
            False.
    """

    def __init__(self, path: Path, *, overwrite: bool = False, clean: bool = True) -> None:
        self.path = fspath(path)
        # Behind a symbolic link the file is replaced, not the link.
        self._target = os.path.realpath(self.path)
        self._overwrite = overwrite
        self._done = False
        check_target(self.path, overwrite=overwrite)
        if clean:
            remove_stale(self._target)
        try:
            self.temporary, descriptor = _create_temporary(self._target)
        except OSError as error:
            raise RecordError(f"{self.path!r} cannot be written: {error.strerror}", file=self.path) from error
        self.file = FileIO(descriptor, "r+")

    def write(self, data: bytes) -> None:
        """Appends bytes.

        Raises:
            RecordError: The disk is full, or failed.
        """
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.file.fileno(), view) :]
        except OSError as error:
            raise RecordError(f"{self.path!r} cannot be written: {error.strerror}", file=self.path) from error

    def park(self) -> None:
        """Makes the bytes durable and closes the temporary, which keeps its temporary name until ``commit``.

        It is no longer locked then: another writer of the same path would take it for the remains of a killed
        one.
        """
        if not self.file.closed:
            os.fsync(self.file.fileno())
            self.file.close()

    def commit(self, path: Path | None = None, *, overwrite: bool | None = None) -> None:
        """Gives the file its name; after this it survives a power cut.

        Args:
            path: Another name in the same folder, for a file whose name is known only at its end.
            overwrite: Whether a file of that name may be replaced, if it is not what was said at the start.

        Raises:
            RecordError: A file of that name has appeared since the start and may not be replaced, or the disk
                failed.
        """
        if path is not None:
            self.path = fspath(path)
            self._target = os.path.realpath(self.path)
        try:
            if not self.file.closed:
                os.fsync(self.file.fileno())
            if self._overwrite if overwrite is None else overwrite:
                os.replace(self.temporary, self._target)
            else:
                _rename_to_new(self.temporary, self._target)
            sync_folder(os.path.dirname(self._target))
        except FileExistsError as error:
            self.discard()
            raise _exists(self.path) from error
        except OSError as error:
            self.discard()
            raise RecordError(f"{self.path!r} cannot be written: {error.strerror}", file=self.path) from error
        self._done = True
        self.file.close()

    def discard(self) -> None:
        """Removes the temporary; nothing appears. Does nothing after ``commit``."""
        if not self._done:
            self._done = True
            try:
                os.unlink(self.temporary)
            except FileNotFoundError:
                pass
            finally:
                self.file.close()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a small file, in the place of an older one.

    Raises:
        RecordError: It cannot be written.
    """
    target = AtomicFile(path, overwrite=True)
    try:
        target.write(content)
        target.commit()
    except BaseException:
        target.discard()
        raise


def check_target(path: str, *, overwrite: bool) -> None:
    """Checks that ``path`` can be written, before any work is done.

    Raises:
        RecordError: See ``AtomicFile``.
    """
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise RecordError(f"{path!r} cannot be written: the folder {folder!r} {what}; create it first", file=path)
    if os.path.isdir(path):
        raise RecordError(f"{path!r} is a folder; expected the name of a file in it", file=path)
    if os.path.lexists(path):
        if not os.path.isfile(path):
            raise RecordError(f"{path!r} is no regular file and cannot be replaced as a whole", file=path)
        if not overwrite:
            raise _exists(path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RecordError(f"{path!r} cannot be written: no permission to write in {folder!r}", file=path)


def remove_stale(path: str) -> list[str]:
    """Removes the temporaries of ``path`` that killed writers left behind; returns their names."""
    removed = []
    token = "[0-9a-f]" * (2 * _TOKEN_BYTES)  # exactly: the name of another file may begin like this one
    for name in glob.glob(f"{glob.escape(_temporary_prefix(path))}{token}.tmp"):
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # gone meanwhile, or not ours to open
        try:
            if _try_lock(descriptor):
                os.unlink(name)
                removed.append(name)
        except FileNotFoundError:
            pass
        finally:
            os.close(descriptor)
    return removed


def sync_folder(folder: str) -> None:
    """Makes the names in a folder durable; a file system that cannot is left alone."""
    descriptor = os.open(folder or os.curdir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def _exists(path: str) -> RecordError:
    return RecordError(f"{path!r} exists already; pass overwrite=True to replace it", file=path)


def _temporary_prefix(path: str) -> str:
    folder, base = os.path.split(path)
    if len(os.fsencode(base)) > 200:  # most file systems allow 255 bytes a name
        base = hashlib.sha256(os.fsencode(base)).hexdigest()
    return os.path.join(folder, f".{base}.")


def _create_temporary(path: str) -> tuple[str, int]:
    """Creates and locks a temporary; returns its name and descriptor."""
    while True:
        name = f"{_temporary_prefix(path)}{secrets.token_hex(_TOKEN_BYTES)}.tmp"
        descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        _try_lock(descriptor)
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        os.close(descriptor)  # another writer took it for stale in the moment before it was locked


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _rename_to_new(source: str, target: str) -> None:
    """Renames without ever replacing ``target``, also when two writers finish at once."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target)
    else:
        os.unlink(source)
