"""What a program that is run unmodified imports: TF1's TensorFlow, Python 2 modules, its own files mended.

A module's global ``__builtins__`` decides which ``__import__`` its statements use. The program's modules are given
builtins of their own, so that TensorFlow, Keras and every other library go on importing what they always have.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import operator
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from tfqueue.compat import python2
from tfqueue.errors import CannotRestore, InvalidArgument

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OLD_DIVISION = "__tfqueue_old_division__"
_OLD_METHOD = "__tfqueue_old_method__"
_OLD_ATTRIBUTE = "__tfqueue_old_attribute__"
_METHODS = {"iteritems": "items", "itervalues": "values", "iterkeys": "keys", "has_key": "__contains__"}
_LISTS = ("keys", "values", "items")


@dataclass(slots=True)
class Sources:
    """The files of the program that were loaded.

    Attributes:
        files: Their paths, in the order of loading.
        python2: What was mended in memory, by path.
    """

    files: list[str] = field(default_factory=list)
    python2: dict[str, tuple[python2.Python2Line, ...]] = field(default_factory=dict)


class Importing:
    """The imports of one program.

    Args:
        modules: The modules of TF1 by full name (``"tensorflow"``, ``"tensorflow.contrib.slim"``), which stand before
            the installed ones.
    """

    def __init__(self, modules: Mapping[str, ModuleType]) -> None:
        self.sources = Sources()
        self._modules = dict(modules)
        self._builtins = _builtins_of(self._import, old=False)
        self._old_builtins = _builtins_of(self._import, old=True)
        self._finder = _Finder(self)
        self._importlib = _Importlib(self._import_module)
        self._entered = ExitStack()

    def __enter__(self) -> Importing:
        from tfqueue.compat.flags import absl_gives_way

        sys.meta_path.insert(0, self._finder)
        self._entered.enter_context(absl_gives_way())
        self._entered.enter_context(_dimensions_divide())
        self._entered.enter_context(_moved_names())
        return self

    def __exit__(self, *error: object) -> None:
        sys.meta_path.remove(self._finder)
        self._entered.close()
        for name in self._finder.loaded:  # another program may have a module of the same name
            sys.modules.pop(name, None)

    # -- running a file ----------------------------------------------------------------------------------------------

    def run(self, path: str, namespace: dict[str, Any]) -> None:
        """Execute a file of the program in this namespace."""
        code, old = self.compile(path)
        namespace["__builtins__"] = self._old_builtins if old else self._builtins
        exec(code, namespace)

    def compile(self, path: str) -> tuple[CodeType, bool]:
        """The code of a source file, and whether it is Python 2.

        Raises:
            InvalidArgument: It is Python 2, and what is left after mending is not Python 3.
            SyntaxError: It is neither.
        """
        with open(path, "rb") as file:
            text = python2.decode(file.read())
        self.sources.files.append(path)
        tree, lines, mended = _parse(text, path)
        # A method alone (`frame.iteritems()`) does not make a source Python 2, whose `/` means something else.
        of_2 = [place for place in lines if not python2.is_later(place)]
        old = any(not place.found.startswith(".") for place in of_2)
        if lines:
            self.sources.python2[path] = lines
            linecache.cache[path] = (len(mended), None, mended.splitlines(keepends=True), path)
            divides = old and not any(
                isinstance(node, ast.ImportFrom)
                and node.module == "__future__"
                and any(alias.name == "division" for alias in node.names)
                for node in tree.body
            )
            tree = ast.fix_missing_locations(_OldMeaning(divides, bool(of_2)).visit(tree))
        return compile(tree, path, "exec", dont_inherit=True), old

    # -- importing ---------------------------------------------------------------------------------------------------

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0:
            if name == "tensorflow" or name.startswith("tensorflow."):
                return self._import_tensorflow(name, fromlist or ())
            if name == "importlib" or (name.startswith("importlib.") and not fromlist):
                builtins.__import__(name)
                return self._importlib
            if name in python2.MODULES and importlib.util.find_spec(name) is None:
                return _old_module(name)
            if any(f"{name}.{item}" in python2.ATTRIBUTES for item in fromlist or ()):
                return _with_old_attributes(builtins.__import__(name, globals, locals, fromlist or ()), fromlist or ())
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            # Python 2 looked beside the importing file first.
            package = (globals or {}).get("__package__")
            old = globals is not None and globals.get("__builtins__") is self._old_builtins
            if level or not package or not old or error.name != name.partition(".")[0]:
                raise
            return builtins.__import__(name, globals, locals, fromlist or (), 1)

    def _import_module(self, name: str, package: str | None = None) -> Any:
        """What `importlib.import_module` is to the program."""
        if name == "tensorflow" or name.startswith("tensorflow."):
            return self._resolve(name)
        return importlib.import_module(name, package)

    def _import_tensorflow(self, name: str, fromlist: Sequence[str]) -> Any:
        module = self._resolve(name)
        if not fromlist:
            return self._modules["tensorflow"]
        for item in fromlist:
            if item == "*":
                vars(module).setdefault("__all__", [key for key in dir(module) if hasattr(module, key)])
            elif f"{name}.{item}" in self._modules:
                setattr(module, item, self._modules[f"{name}.{item}"])
            else:
                self._require(module, name, item)
        return module

    def _require(self, module: Any, name: str, item: str) -> None:
        """Make sure that ``from name import item`` finds something, or say why it cannot."""
        try:
            getattr(module, item)
        except CannotRestore as error:
            raise ImportError(str(error), name=name) from error
        except AttributeError:
            with suppress(ModuleNotFoundError):  # then the import statement itself says that there is none
                setattr(module, item, self._resolve(f"{name}.{item}"))

    def _resolve(self, name: str) -> Any:
        """The module of this full name: TF1's, or an attribute of one of those, or an installed one."""
        if name in self._modules:
            return self._modules[name]
        found: Any = self._modules["tensorflow"]
        try:
            for part in name.split(".")[1:]:
                found = getattr(found, part)
        except CannotRestore as error:
            raise ModuleNotFoundError(str(error), name=name) from error
        except AttributeError:
            found = None
        return found if isinstance(found, ModuleType) else importlib.import_module(name)


class _Importlib(ModuleType):
    """The module importlib, with an ``import_module`` that finds TF1."""

    def __init__(self, import_module: Callable[..., Any]) -> None:
        super().__init__("importlib")
        self.import_module = import_module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are files of the program, and loads them as its main file is loaded."""

    def __init__(self, importing: Importing) -> None:
        self._importing = importing
        self._libraries = _library_folders()
        self.loaded: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name.partition(".")[0] in ("tensorflow", "tfqueue", "numpy"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        origin = os.path.realpath(spec.origin)
        if origin.startswith(self._libraries):
            return None
        spec.loader = _Loader(self._importing, name, spec.origin)
        self.loaded.append(name)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file of the program; nothing is written to its cache, since the code may be mended."""

    def __init__(self, importing: Importing, name: str, path: str) -> None:
        super().__init__(name, path)
        self._importing = importing

    def get_code(self, fullname: str) -> CodeType:
        return self._importing.compile(self.path)[0]

    def exec_module(self, module: ModuleType) -> None:
        self._importing.run(self.path, module.__dict__)


def _library_folders() -> tuple[str, ...]:
    """Where the standard library and installed packages are, and tfqueue: what is there is none of the program's."""
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    found = {os.path.realpath(folder) + os.sep for folder in folders if folder}
    return (*sorted(found), os.path.realpath(_PACKAGE) + os.sep)


def _parse(text: str, path: str) -> tuple[ast.Module, tuple[python2.Python2Line, ...], str]:
    """The tree, what is Python 2 in it, and the text that was parsed."""
    try:
        tree = _tree(text, path)
    except SyntaxError as error:
        mended = python2.mend(text)
        if not mended.lines:
            raise
        try:
            tree = _tree(mended.text, path)
        except SyntaxError as left:
            lines = "\n".join(f"  {path}:{line.line}: {line.found} -> {line.write}" for line in mended.lines)
            raise InvalidArgument(
                f"{path} is Python 2, and could not be translated in memory: line {left.lineno} ({left.msg}). "
                f"To be mended by hand:\n{lines}"
            ) from error
        return tree, tuple(sorted((*mended.lines, *python2.names(tree, mended.text)), key=_line)), mended.text
    return tree, python2.names(tree, text), text


def _tree(text: str, path: str) -> ast.Module:
    """As `ast.parse`, without a frame of the module ast in the traceback of a SyntaxError."""
    tree = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


def _line(found: python2.Python2Line) -> int:
    return found.line


# -- what Python 2 meant ---------------------------------------------------------------------------------------------


class _OldMeaning(ast.NodeTransformer):
    """Gives ``/`` and the methods of dictionaries the meaning that they had."""

    def __init__(self, divides: bool, methods: bool) -> None:
        self._divides = divides
        self._methods = methods

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not self._divides or not isinstance(node.op, ast.Div):
            return node
        return _call(node, _OLD_DIVISION, node.left, node.right)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            name = f"{node.value.id}.{node.attr}"
            if name in python2.ATTRIBUTES:
                return _call(node, _OLD_ATTRIBUTE, node.value, ast.Constant(name))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not self._divides or not isinstance(node.op, ast.Div) or not isinstance(node.target, ast.Name):
            return node
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        return ast.copy_location(ast.Assign([node.target], _call(node, _OLD_DIVISION, load, node.value)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        if not self._methods or not isinstance(called, ast.Attribute) or node.keywords:
            return node
        if called.attr in _METHODS or (called.attr in (*_LISTS, "next") and not node.args):
            return _call(node, _OLD_METHOD, called.value, ast.Constant(called.attr), *node.args)
        return node


def _call(where: ast.AST, function: str, *arguments: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(function, ast.Load()), list(arguments), [])
    return ast.copy_location(call, where)


def _old_division(left: Any, right: Any) -> Any:
    """``left / right`` of Python 2: whole numbers give a whole number, rounded down."""
    import tensorflow as tf

    if isinstance(left, (tf.Tensor, tf.Variable)) or isinstance(right, (tf.Tensor, tf.Variable)):
        return tf.compat.v1.div(left, right)
    if _is_whole(left) and _is_whole(right):
        return left // right
    return operator.truediv(left, right)


@contextmanager
def _dimensions_divide() -> Iterator[None]:
    """``shape[-1] / 2`` gives a `Dimension`, rounded down, as in Python 2; TensorFlow refuses it under Python 3.

    For every source, since one that needs it is often read by both, and nothing else in it is of Python 2.
    """
    from tensorflow.compat.v1 import Dimension

    own = Dimension.__truediv__, Dimension.__rtruediv__
    Dimension.__truediv__, Dimension.__rtruediv__ = Dimension.__floordiv__, Dimension.__rfloordiv__
    try:
        yield
    finally:
        Dimension.__truediv__, Dimension.__rtruediv__ = own


# What programs take from modules of TensorFlow that no longer have it; all of it is in tf.compat.v1.
_MOVED = {
    "tensorflow.python.framework.ops": ("Tensor",),
    "tensorflow.python.ops.array_ops": ("stack", "unstack"),
    "tensorflow.python.ops.control_flow_ops": ("case", "cond", "while_loop"),
}


@contextmanager
def _moved_names() -> Iterator[None]:
    import tensorflow.compat.v1 as tf1

    with ExitStack() as stack:
        for module, found in ((importlib.import_module(name), found) for name, found in _MOVED.items()):
            for name in found:
                if not hasattr(module, name):
                    setattr(module, name, getattr(tf1, name))
                    stack.callback(delattr, module, name)
        yield


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) or (
        isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.integer)
    )


def _old_method(value: Any, name: str, *arguments: Any) -> Any:
    """``value.name()`` of Python 2, where that may be a method that dictionaries and iterators have lost."""
    if name in _METHODS and not hasattr(value, name):
        found = getattr(value, _METHODS[name])(*arguments)
        return found if name == "has_key" else iter(found)
    if name == "next" and not hasattr(value, name):
        return next(value)
    found = getattr(value, name)(*arguments)
    return list(found) if name in _LISTS and isinstance(value, dict) else found


def _old_attribute(module: Any, name: str) -> Any:
    """``module.attribute`` of Python 2's standard library."""
    attribute = name.partition(".")[2]
    if hasattr(module, attribute) or not isinstance(module, ModuleType):
        return getattr(module, attribute)
    home, _, last = python2.ATTRIBUTES[name].rpartition(".")
    return getattr(importlib.import_module(home or "builtins"), last)


def _with_old_attributes(module: ModuleType, items: Sequence[str]) -> ModuleType:
    """A module from which ``from module import items`` takes what Python 2 had in it."""
    own = ModuleType(module.__name__)
    for item in items:
        name = f"{module.__name__}.{item}"
        setattr(own, item, _old_attribute(module, name) if name in python2.ATTRIBUTES else getattr(module, item))
    return own


def _cmp(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _old_file_code(path: str, *namespaces: Any) -> None:
    with open(path, "rb") as file:
        code = compile(python2.mend(python2.decode(file.read())).text, path, "exec")
    scope = sys._getframe(1).f_globals if not namespaces else namespaces[0]
    exec(code, scope, *namespaces[1:])


def _listing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def listed(*arguments: Any) -> list[Any]:
        return list(function(*arguments))

    return listed


def _builtins_of(program_import: Callable[..., Any], *, old: bool) -> ModuleType:
    """The builtins of the program's modules; those of Python 2 for a file that is Python 2."""
    own = ModuleType("builtins")
    own.__dict__.update({key: value for key, value in vars(builtins).items() if key not in ("__name__", "__spec__")})
    own.__dict__["__import__"] = program_import
    own.__dict__.update({_OLD_DIVISION: _old_division, _OLD_METHOD: _old_method, _OLD_ATTRIBUTE: _old_attribute})
    if old:
        own.__dict__.update(
            {
                "xrange": range,
                "unicode": str,
                "basestring": str,
                "raw_input": input,
                "long": int,
                "unichr": chr,
                "cmp": _cmp,
                "reduce": functools.reduce,
                "reload": importlib.reload,
                "execfile": _old_file_code,
                "file": open,
                "map": _listing(map),
                "zip": _listing(zip),
                "filter": _listing(filter),
            }
        )
    return own


def _old_module(name: str) -> Any:
    """A module of Python 2's standard library by its old name."""
    return importlib.import_module(python2.MODULES[name])
