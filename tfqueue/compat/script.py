"""Runs a whole TF1 program unmodified, as ``python script.py`` would: TF1's names and behaviour, tfqueue's life cycle.

This executes the code of the program. TensorFlow is switched to its TF1 behaviour for the whole process, once and for
all; so it is for a process of its own, which is what ``tfqueue run`` is.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import multiprocessing.spawn
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tfqueue.errors import CannotLower, CannotRestore, InvalidArgument, TFQueueWarning

if TYPE_CHECKING:
    from tfqueue.compat.run_imports import Importing
    from tfqueue.compat.run_report import RunReport
    from tfqueue.scan.resolve import Reference

__all__ = ["Outcome", "run_script"]

ENGINES = ("threads", "lockstep", "tfdata")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        exit_code: What ``python script.py`` would have ended with.
        report: What was found in the program; None where that failed, which stderr then tells.
    """

    exit_code: int
    report: RunReport | None


def run_script(
    program: str | PathLike[str],
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    engine: str = "threads",
    steps: int | None = None,
    stall_timeout: float = 60.0,
    report_folder: str | PathLike[str] | None = None,
) -> Outcome:
    """Run a TF1 program in this process; it prints what it prints, and its errors go to stderr.

    Args:
        program: The file; with ``module`` the name of a module, as for ``python -m``.
        arguments: The program's arguments, ``sys.argv[1:]``.
        module: Whether ``program`` is the name of a module.
        engine: How its queues are run: ``"threads"``, ``"lockstep"`` or ``"tfdata"``, as for QueuePipeline.
        steps: End the program after so many ``session.run`` calls that take something from a queue. A loop that asks
            its coordinator (or Supervisor, or MonitoredSession) ends by itself, and what follows it is run.
        stall_timeout: Seconds without progress after which PipelineStalled is raised in the step that waits.
        report_folder: Where to write report.json, report.txt and report.html, also when the program fails.

    Returns:
        The exit code and the report.

    Raises:
        InvalidArgument: There is no such program; it is a folder without ``__main__.py``; it is written for
            TensorFlow 2; an option that cannot work.
    """
    if engine not in ENGINES:
        raise InvalidArgument(f"engine {engine!r} is not known; known: {', '.join(map(repr, ENGINES))}")
    if steps is not None and steps < 1:
        raise InvalidArgument(f"steps is a number of session.run calls from 1; got {steps}")
    if report_folder is not None:
        try:  # now, not after hours of training
            Path(report_folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"no report can be written to {report_folder}: {error.strerror}") from error
    path, name, folder = _module_place(str(program)) if module else _script_place(Path(program))
    refuse_tf2(path)
    _switch_to_tf1()
    # After the switch, since they import TensorFlow, and before the program replaces what they look at.
    from tfqueue.compat import numpy_names
    from tfqueue.compat.run_report import report_of
    from tfqueue.compat.run_sessions import Sessions, StepsReached

    sessions = Sessions(engine, steps=steps, stall_timeout=stall_timeout)
    importing = _importing()
    stopped_after: int | None = None

    ended = threading.Event()
    others = frozenset(threading.enumerate())

    def finish(exit_code: int) -> RunReport | None:
        ended.set()
        sessions.leave()
        sys.stdout.flush()
        try:
            report = report_of(
                sessions, importing.sources, program=str(program), exit_code=exit_code, stopped_after=stopped_after
            )
            print(f"tfqueue: {report.summary()}", file=sys.stderr, flush=True)
            if report_folder is not None:
                report.write(report_folder)
        except Exception as error:  # noqa: BLE001 - the program has run, and its exit code is what counts
            print(f"tfqueue: the report failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return None
        return report

    with ExitStack() as stack:
        stack.enter_context(_process(path, folder, arguments, ended))
        stack.enter_context(_children(path, name))
        stack.enter_context(numpy_names.removed_names())
        stack.enter_context(_report_before_exit(finish))
        stack.enter_context(importing)
        stack.enter_context(sessions.installed())
        try:
            _execute(importing, path, name)
            exit_code = 0
        except StepsReached as reached:
            exit_code, stopped_after = 0, reached.steps
        except SystemExit as end:
            exit_code = _code_of(end)
        except BaseException as error:  # noqa: BLE001 - whatever the program raised, as plain Python would tell it
            exit_code = _tell(error, engine)
            if isinstance(error, Exception) and _is_without_tf1(importing.sources.files):
                print(
                    f"tfqueue: {path} uses no session, placeholder or queue of TensorFlow 1; if it is written for "
                    f"TensorFlow 2, run it with plain python",
                    file=sys.stderr,
                )
        with suppress(KeyboardInterrupt):
            sessions.wait_for_threads(others)
        if stopped_after is None and sessions.steps_left == 0:
            stopped_after = sessions.steps_taken
        sys.stdout.flush()
        return Outcome(exit_code, finish(exit_code))


# -- what is run -----------------------------------------------------------------------------------------------------


def _script_place(path: Path) -> tuple[str, str | None, str]:
    """(file, module name, folder for sys.path) of a script."""
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise InvalidArgument(f"{path} is a folder without a __main__.py; name the script in it")
        return str(path / "__main__.py"), None, str(path)
    if not path.is_file():
        raise InvalidArgument(f"there is no script {path} (current folder: {Path.cwd()})")
    return str(path), None, str(path.resolve().parent)


def _module_place(name: str) -> tuple[str, str | None, str]:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    finally:
        sys.path.remove(here)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise InvalidArgument(f"no module {name!r} can be run from {here} or the installed packages")
    return spec.origin, name, here


def _execute(importing: Importing, path: str, name: str | None) -> None:
    """Run the file as the module ``__main__``."""
    main = ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__cached__"] = None
    if name is not None:
        main.__package__ = name.rpartition(".")[0]
        main.__spec__ = importlib.util.spec_from_file_location(name, path)
    sys.modules["__main__"] = main
    importing.run(path, main.__dict__)


def refuse_tf2(path: str) -> None:
    """Raise InvalidArgument where a program is written for TensorFlow 2, and plain Python is what runs it."""
    references = _references(path)
    tf2 = [r for r in references if r.name.startswith(_TF2)]
    if tf2 and not any(r.name.startswith(_TF1) for r in references):
        raise InvalidArgument(
            f"{path} is written for TensorFlow 2 (line {tf2[0].line}: {tf2[0].name}); run it with plain python. "
            f"tfqueue run is for programs with sessions and queue runners"
        )


def _is_without_tf1(files: Sequence[str]) -> bool:
    """Whether files use TensorFlow, but nothing that only TensorFlow 1 has."""
    names = [reference.name for path in files for reference in _references(path)]
    return any(name.startswith("tf.") for name in names) and not any(name.startswith(_TF1) for name in names)


def _references(path: str) -> list[Reference]:
    from tfqueue.scan.resolve import resolve
    from tfqueue.scan.sources import read

    source = read(Path(path))
    if source is None or source.tree is None:
        return []
    return [reference for reference in resolve(source.tree).references if not reference.imported]


_TF2 = (
    "tf.GradientTape",
    "tf.function",
    "tf.random.set_seed",
    "tf.config.list_physical_devices",
    "tf.config.experimental.list_physical_devices",
    "tf.summary.create_file_writer",
    "tf2.",
)
_TF1 = (
    *(f"tf.{name}" for name in ("Session", "InteractiveSession", "placeholder", "app.", "contrib.", "get_variable")),
    *(f"tf.train.{name}" for name in ("string_input", "slice_input", "range_input", "batch", "shuffle_batch")),
    *(f"tf.train.{name}" for name in ("Supervisor", "Monitored", "Coordinator", "start_queue", "GradientDescent")),
    *("tf.global_variables_initializer", "tf.initialize_all", "tf.disable_v2", "tf.disable_eager", "tf.FIFOQueue"),
)


# -- the process -----------------------------------------------------------------------------------------------------


def _switch_to_tf1() -> None:
    """TF1's behaviour for this process: graphs, reference variables, control flow and shapes as they were."""
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # the Keras that works in graphs; read on import
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    tf.compat.v1.reset_default_graph()


@contextmanager
def _process(path: str, folder: str, arguments: Sequence[str], ended: threading.Event) -> Iterator[None]:
    """What the program sees of the process: its arguments, its folder first on the path; all put back afterwards."""
    from absl import flags

    before = sys.argv, sys.path[:], sys.modules["__main__"], warnings.showwarning
    hook = _ThreadHook(ended)
    known = set(flags.FLAGS)
    level = logging.getLogger("tensorflow").level
    sys.argv = [path, *arguments]
    sys.path.insert(0, folder)
    warnings.showwarning = _warn
    threading.excepthook = hook
    try:
        yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"], warnings.showwarning = before
        threading.excepthook = hook.after_program()
        logging.getLogger("tensorflow").setLevel(level)
        for flag in set(flags.FLAGS) - known:
            delattr(flags.FLAGS, flag)
        flags.FLAGS.unparse_flags()


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A warning of tfqueue as a line for a person; the program's own as Python tells them."""
    if issubclass(category, TFQueueWarning):
        text = f"tfqueue: warning: {message}\n"
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=file or sys.stderr)


def _importing() -> Importing:
    from tfqueue.compat import overlay, submodules
    from tfqueue.compat.run_imports import Importing

    overlay.forget()
    return Importing({"tensorflow": overlay.module("tf"), **submodules.modules()})


@contextmanager
def _children(path: str, module: str | None) -> Iterator[None]:
    """Let processes that are started anew find TF1 in the program's main file, which they execute."""
    original = multiprocessing.spawn.get_preparation_data

    def preparation(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        if data.pop("init_main_from_name", None) or "init_main_from_path" in data:
            data["init_main_from_path"] = str(Path(__file__).with_name("run_child_main.py"))
        return data

    os.environ[_CHILD] = json.dumps({"path": os.path.abspath(path), "name": module})
    multiprocessing.spawn.get_preparation_data = preparation
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = original
        del os.environ[_CHILD]


_CHILD = "TFQUEUE_RUN_PROGRAM"
_for_good = ExitStack()  # of a child, in which nothing is ever put back


def become_child(namespace: dict[str, Any]) -> None:
    """Execute the main file of the program in a process that it has started; for `run_child_main` only."""
    from tfqueue.compat import numpy_names

    program = json.loads(os.environ[_CHILD])
    _switch_to_tf1()
    _for_good.enter_context(numpy_names.removed_names())
    importing = _for_good.enter_context(_importing())
    namespace["__file__"] = program["path"]
    namespace["__package__"] = (program["name"] or "").rpartition(".")[0]
    importing.run(program["path"], namespace)


class _ThreadHook:
    """Tells of an exception that ended a thread of the program as Python tells it, while the program runs.

    Once the program has ended, a thread that was left in a queue gets an error because the queue is cancelled, and
    may come to that only after everything else is put back; plain Python ends it without a word.
    """

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._others = WeakSet(threading.enumerate())
        self._left: WeakSet[threading.Thread] | None = None
        self._previous = threading.excepthook

    def __call__(self, told: threading.ExceptHookArgs) -> None:
        from tfqueue.compat.run_traceback import program_traceback

        others = told.thread in self._others if self._left is None else told.thread not in self._left
        if others:
            self._previous(told)
        elif told.exc_value is not None and not isinstance(told.exc_value, SystemExit) and not self._ended.is_set():
            name = told.thread.name if told.thread is not None else "unknown"
            print(f"Exception in thread {name}:\n{program_traceback(told.exc_value)}", end="", file=sys.stderr)

    def after_program(self) -> Callable[[threading.ExceptHookArgs], Any]:
        """The hook from now on: this one while threads of the program are left, else the one before it."""
        self._left = WeakSet(thread for thread in threading.enumerate() if thread not in self._others)
        return self if self._left else self._previous


@contextmanager
def _report_before_exit(finish: Callable[[int], Any]) -> Iterator[None]:
    """Let a program that ends the process at once (os._exit) do so after the report; its forked children do not."""
    original = os._exit
    owner = os.getpid()

    def exit_at_once(status: int) -> None:
        if os.getpid() == owner:
            os._exit = original
            finish(status)
        original(status)

    os._exit = exit_at_once  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = original


def _code_of(end: SystemExit) -> int:
    """The exit code that Python gives for ``sys.exit(code)``."""
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def _tell(error: BaseException, engine: str) -> int:
    """Print the traceback of the program, and what tfqueue knows about it; returns the exit code."""
    from tfqueue.compat.run_traceback import line_of, program_traceback

    if isinstance(error, (CannotLower, InvalidArgument)):  # not the program's doing
        place = line_of(error)
        if place is None:  # of the program's text, before its first line ran
            print(f"tfqueue: {error}", file=sys.stderr)
            return error.exit_code
        source = getattr(error, "source", None)
        advice = getattr(error, "advice", None) or "use --engine threads"
        built = f" ({source})" if source and source not in str(error) else ""
        print(
            f"tfqueue: this program cannot run with --engine {engine}: {error}{built}; {advice} (at {place})",
            file=sys.stderr,
        )
        return error.exit_code
    print(program_traceback(error), end="", file=sys.stderr)
    place = line_of(error) or "an unknown line"
    cause = error if isinstance(error, CannotRestore) else error.__cause__
    if isinstance(cause, CannotRestore):
        print(f"tfqueue: {place} uses {cause.name}, which is gone. {_today(cause)}", file=sys.stderr)
    elif type(error).__name__ == "NotFoundError" and ".so" in str(error):
        print(
            f"tfqueue: {place} loads a library of custom ops that is not there, or was built for another TensorFlow: "
            f"build it anew with the flags of tf.sysconfig.get_compile_flags() and get_link_flags()",
            file=sys.stderr,
        )
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _today(error: CannotRestore) -> str:
    return f"Today: {error.modern}" if error.modern else "It has no counterpart"
