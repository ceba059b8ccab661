"""Which TensorFlow name each expression of a source means, without importing anything.

Aliases are followed: ``import tensorflow as tf``, ``from tensorflow import train``, ``slim = tf.contrib.slim``,
``reader = tf.TFRecordReader()`` (whose methods are then ``tf.TFRecordReader().read``), also on ``self``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

# TensorFlow's own files, from which programs imported what has a public name, too.
_PRIVATE = {
    "client.session": "tf",
    "framework.load_library": "tf",
    "ops.data_flow_ops": "tf",
    "ops.image_ops": "tf.image",
    "ops.io_ops": "tf",
    "ops.parsing_ops": "tf",
    "ops.script_ops": "tf",
    **dict.fromkeys(
        (
            f"training.{name}"
            for name in ("coordinator", "input", "monitored_session", "queue_runner", "queue_runner_impl", "supervisor")
        ),
        "tf.train",
    ),
}
# The beginning of a full module name, and what stands for it.
_ROOTS = (
    *((f"tensorflow.python.{name}", public) for name, public in _PRIVATE.items()),
    ("tensorflow.compat.v1", "tf"),
    ("tensorflow.compat.v2", "tf2"),
    ("tfqueue.compat.v1", "tf"),
    ("tensorflow", "tf"),
    ("tf_slim", "tf.contrib.slim"),
    ("numpy", "np"),
    ("tfqueue", "tfqueue"),
)


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of a TensorFlow name.

    Attributes:
        name: The name, ``"tf.train.batch"``.
        line: Its line, from 1.
        column: Its column, from 0.
        function: The function that it stands in, ``"Model.build"``; empty for the module itself.
        call: The call, where the name is called.
        imported: Whether it is an import statement.
        module: The module that the import statement names.
    """

    name: str
    line: int
    column: int
    function: str
    call: ast.Call | None = None
    imported: bool = False
    module: str = ""

    def argument(self, keyword: str, position: int | None = None) -> ast.expr | None:
        """An argument of the call; None where it is not given."""
        if self.call is None:
            return None
        for given in self.call.keywords:
            if given.arg == keyword:
                return given.value
        if position is not None and position < len(self.call.args):
            found = self.call.args[position]
            return None if isinstance(found, ast.Starred) else found
        return None


@dataclass(slots=True)
class Resolved:
    """What was found in one source.

    Attributes:
        references: Every use of a TensorFlow name, in the order of the source.
        calls: Of each function, the names of the functions of the same source that it mentions.
        scopes: What `tfqueue.scan.pipelines.scope_of` has found so far.
    """

    references: list[Reference] = field(default_factory=list)
    calls: dict[str, set[str]] = field(default_factory=dict)
    scopes: dict[str, set[str]] = field(default_factory=dict)
    _by_function: dict[str, list[Reference]] = field(default_factory=dict)

    @property
    def by_function(self) -> dict[str, list[Reference]]:
        """The references, by the function that they stand in."""
        if not self._by_function:
            for reference in self.references:
                self._by_function.setdefault(reference.function, []).append(reference)
        return self._by_function


def resolve(tree: ast.Module) -> Resolved:
    """Find every use of a TensorFlow or NumPy name in a source."""
    visitor = _Visitor()
    visitor.visit(tree)
    visitor.found.references.sort(key=lambda reference: (reference.line, reference.column))
    return visitor.found


def module_name(name: str) -> str | None:
    """What stands for a full module name: ``"tensorflow.contrib.slim"`` -> ``"tf.contrib.slim"``."""
    for root, short in _ROOTS:
        if name == root:
            return short
        if name.startswith(f"{root}."):
            return short + name[len(root) :]
    return None


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found = Resolved()
        self._scopes: list[dict[str, str | None]] = [{}]
        self._attributes: dict[str, str] = {}  # of self, in the whole source
        self._functions: list[str] = []
        self._defined: set[str] = set()

    def visit_Module(self, node: ast.Module) -> None:
        self._defined = set(_definitions(node))
        self.generic_visit(node)

    # -- names that are made -----------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = module_name(alias.name)
            if name is None:
                self._bind((alias.asname or alias.name).partition(".")[0], None)
                continue
            if alias.asname:
                self._bind(alias.asname, name)
            else:
                root = alias.name.partition(".")[0]
                self._bind(root, module_name(root))
            self._add(name, node, imported=True, module=alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = module_name(node.module) if node.module and not node.level else None
        for alias in node.names:
            if base is None:
                self._bind(alias.asname or alias.name, None)
                continue
            # `from tensorflow.compat import v1 as tf`
            full = module_name(f"{node.module}.{alias.name}") or f"{base}.{alias.name}"
            self._bind(alias.asname or alias.name, full)
            self._add(full, node, imported=True, module=f"{node.module}.{alias.name}")

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._assign(node.target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            pairs = (
                value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else ()
            )
            for index, item in enumerate(target.elts):
                self._assign(item, pairs[index] if pairs else ast.Constant(None))
            return
        meaning = self._meaning(value)
        if isinstance(target, ast.Name):
            self._bind(target.id, meaning)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            if meaning is not None:
                self._attributes[target.attr] = meaning
        else:
            self.visit(target)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, item.context_expr)
        for statement in node.body:
            self.visit(statement)

    def _bind(self, name: str, meaning: str | None) -> None:
        self._scopes[-1][name] = meaning

    # -- scopes ------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (
            *node.decorator_list,
            *node.args.defaults,
            *(d for d in node.args.kw_defaults if d is not None),
        ):
            self.visit(outside)
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        scope: dict[str, str | None] = {argument.arg: None for argument in every}
        scope.update({extra.arg: None for extra in (arguments.vararg, arguments.kwarg) if extra is not None})
        self._inside(node.name, scope, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases):
            self.visit(outside)
        self._inside(node.name, {}, node.body)

    def _inside(self, name: str, scope: dict[str, str | None], body: list[ast.stmt]) -> None:
        self._scopes.append(scope)
        self._functions.append(name)
        for statement in body:
            self.visit(statement)
        self._functions.pop()
        self._scopes.pop()

    def visit_Constant(self, node: ast.Constant) -> None:
        """Nothing is in it; a file of data has millions."""

    # -- names that are used -----------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        meaning = self._meaning(node.func)
        if meaning is not None:
            self._add(meaning, node.func, call=node)
            if isinstance(node.func, ast.Attribute):
                self._visit_base(node.func.value)
        else:
            self.visit(node.func)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        meaning = self._meaning(node)
        if meaning is not None and isinstance(node.ctx, ast.Load):
            self._add(meaning, node)
            self._visit_base(node.value)
        else:
            if node.attr in self._defined:
                self._mention(node.attr)
            self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._defined:
            self._mention(node.id)

    def _visit_base(self, node: ast.expr) -> None:
        """Of ``tf.TFRecordReader().read``: the call is a use of its own; the parts of a plain name are not."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if isinstance(node, ast.Call):
            self.visit(node)

    def _mention(self, function: str) -> None:
        self.found.calls.setdefault(self._function, set()).add(function)

    def _meaning(self, node: ast.expr) -> str | None:
        """The TensorFlow name that an expression stands for, or None."""
        if isinstance(node, ast.Name):
            for scope in reversed(self._scopes):
                if node.id in scope:
                    return scope[node.id]
            return None
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self._attributes:
                return self._attributes[node.attr]
            base = self._meaning(node.value)
            if base is None:
                return None
            if f"{base}.{node.attr}" in ("tf.compat.v1", "tf.compat.v2"):
                return "tf"
            return f"{base}.{node.attr}"
        if isinstance(node, ast.Call):
            called = self._meaning(node.func)
            last = "" if called is None else called.rpartition(".")[2]
            # What a class makes can be followed by its methods; what a function returns is a tensor.
            return f"{called}()" if last[:1].isupper() or last in ("managed_session",) else None
        return None

    @property
    def _function(self) -> str:
        return ".".join(self._functions)

    def _add(
        self,
        name: str,
        node: ast.AST,
        *,
        call: ast.Call | None = None,
        imported: bool = False,
        module: str = "",
    ) -> None:
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute) and node.end_lineno is not None:
            line = node.end_lineno  # where the last part of a name over several lines stands
        self.found.references.append(Reference(name, line, column, self._function, call, imported, module))


def _definitions(statement: ast.AST) -> Iterator[str]:
    """The names of all functions, at any depth; only statements are looked at, which are few."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name
    for block in ("body", "orelse", "finalbody", "handlers"):
        inner = getattr(statement, block, None)
        for child in inner if isinstance(inner, list) else ():
            yield from _definitions(child)


def with_callees(resolved: Resolved, function: str) -> Iterator[str]:
    """The function and those of the same source that it mentions, at any depth."""
    pending, seen = [function], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        for mentioned in resolved.calls.get(current, ()):
            pending += [name for name in resolved.by_function if name.rpartition(".")[2] == mentioned]
