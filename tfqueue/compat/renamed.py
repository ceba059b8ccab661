"""Functions whose arguments TensorFlow 1.0 put in another order, taking both orders; and some that it removed.

Where both orders are taken, a call that today's TensorFlow accepts means what it means today: the old order is
recognised by an argument that would be an error now.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.compat import names

tf1 = tf.compat.v1


def concat(*arguments: Any, **options: Any) -> Any:
    """tf.concat(values, axis, name), or as before 1.0: tf.concat(concat_dim, values, name)."""
    if "concat_dim" in options or (len(arguments) >= 1 and _is_number(arguments[0])):
        names.touch("tf.concat")
        old = _named(("concat_dim", "values", "name"), arguments, options)
        return tf1.concat(old["values"], old["concat_dim"], name=old.get("name", "concat"))
    return tf1.concat(*arguments, **options)


def split(*arguments: Any, **options: Any) -> Any:
    """tf.split(value, num_or_size_splits, axis, num, name), or as before 1.0: tf.split(split_dim, num_split, value)."""
    by_position = len(arguments) >= 3 and all(map(_is_number, arguments[:2])) and not _is_number(arguments[2])
    if "split_dim" in options or "num_split" in options or by_position or _two_numbers_and_value(arguments, options):
        names.touch("tf.split")
        old = _named(("split_dim", "num_split", "value", "name"), arguments, options)
        return tf1.split(old["value"], old["num_split"], old["split_dim"], name=old.get("name", "split"))
    return tf1.split(*arguments, **options)


def random_crop_of_images(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Any:
    """tf.image.random_crop(value, size), or as before 0.7: an image, and its new height and width alone."""
    value = tf.convert_to_tensor(value)
    if np.shape(size) == (2,) and value.shape.rank == 3:
        names.touch("tf.image.random_crop")
        size = [*size, value.shape.as_list()[2] or tf.shape(value)[2]]
    return tf1.image.random_crop(value, size, seed, name)


def sparse_split(*arguments: Any, **options: Any) -> Any:
    """tf.sparse_split(sp_input=, num_split=, axis=), or as before 1.0 by position: (split_dim, num_split, sp_input)."""
    if arguments or "split_dim" in options:
        names.touch("tf.sparse_split")
        old = _named(("split_dim", "num_split", "sp_input", "name"), arguments, options)
        options = {"axis": old.pop("split_dim"), **old}
    return tf1.sparse_split(**options)


def _two_numbers_and_value(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    return len(arguments) == 2 and all(map(_is_number, arguments)) and "value" in options


def reverse(tensor: Any, axis: Any = None, name: str | None = None, *, dims: Any = None) -> Any:
    """tf.reverse(tensor, axis), or as before 1.0: tf.reverse(tensor, dims) with one bool for each dimension."""
    flags = axis if dims is None else dims
    static = tf.get_static_value(flags) if tf.is_tensor(flags) else flags
    if static is not None and np.asarray(static).dtype == np.bool_:
        names.touch("tf.reverse")
        return tf1.reverse(tensor, np.flatnonzero(np.asarray(static)).astype(np.int32), name=name)
    if tf.is_tensor(flags) and flags.dtype == tf.bool:
        names.touch("tf.reverse")
        flags = tf.cast(tf.squeeze(tf.where(flags), axis=1), tf.int32)
    return tf1.reverse(tensor, flags, name=name)


def resize_images(*arguments: Any, **options: Any) -> Any:
    """tf.image.resize_images(images, size, ...), or as before 1.0: (images, new_height, new_width, method, ...)."""
    old_names = ("images", "new_height", "new_width", "method", "align_corners")
    by_position = len(arguments) >= 3 and _is_number(arguments[1]) and _is_number(arguments[2])
    if "new_height" in options or "new_width" in options or by_position:
        names.touch("tf.image.resize_images")
        options = {"images" if name == "image" else name: value for name, value in options.items()}
        old = _named(old_names, arguments, options)
        size = [old.pop("new_height"), old.pop("new_width")]
        return tf1.image.resize_images(old.pop("images"), size, **old)
    return tf1.image.resize_images(*arguments, **options)


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """Elements of ``t`` where ``condition`` is true and of ``e`` elsewhere; a vector of conditions picks whole rows."""
    return tf1.where(condition, t, e, name=name)


def listdiff(x: Any, y: Any, name: str | None = None) -> Any:
    """The values of ``x`` that are not in ``y``, and their int32 indices: a pair (out, idx)."""
    return tf1.setdiff1d(x, y, name=name)


def batch_matmul(x: Any, y: Any, adj_x: bool | None = None, adj_y: bool | None = None, name: str | None = None) -> Any:
    """Products of the matrices in the last two dimensions; ``adj_`` takes the adjoint of a side first."""
    return tf1.matmul(x, y, adjoint_a=bool(adj_x), adjoint_b=bool(adj_y), name=name)


def softmax_cross_entropy_with_logits(*arguments: Any, **options: Any) -> Any:
    """By keyword as today, or as before 1.0 by position: (logits, labels, dim, name)."""
    return tf1.nn.softmax_cross_entropy_with_logits(
        **_loss("softmax", ("logits", "labels", "dim", "name"), arguments, options)
    )


def sparse_softmax_cross_entropy_with_logits(*arguments: Any, **options: Any) -> Any:
    """By keyword as today, or as before 1.0 by position: (logits, labels, name)."""
    named = _loss("sparse_softmax", ("logits", "labels", "name"), arguments, options)
    return tf1.nn.sparse_softmax_cross_entropy_with_logits(**named)


def sigmoid_cross_entropy_with_logits(*arguments: Any, **options: Any) -> Any:
    """By keyword as today, or as before 1.0 by position: (logits, targets, name)."""
    return tf1.nn.sigmoid_cross_entropy_with_logits(
        **_loss("sigmoid", ("logits", "labels", "name"), arguments, options)
    )


def _loss(kind: str, order: tuple[str, ...], arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    if "targets" in options:  # what 0.x called the labels of the sigmoid loss
        options = {**options, "labels": options["targets"]}
        del options["targets"]
    if arguments:
        names.touch(f"tf.nn.{kind}_cross_entropy_with_logits")
    if arguments and arguments[0] is None:  # the sentinel that 1.x put first to refuse arguments by position
        arguments = arguments[1:]
        order = ("labels", "logits", *order[2:])
    return _named(order, arguments, options)


def _named(order: tuple[str, ...], arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names; the errors of a call that does not fit are Python's own, in kind."""
    if len(arguments) > len(order):
        raise TypeError(f"takes at most {len(order)} arguments ({', '.join(order)}); got {len(arguments)}")
    named = dict(zip(order, arguments, strict=False))
    for name, value in options.items():
        if name in named:
            raise TypeError(f"got two values for the argument {name!r}")
        named[name] = value
    return named


def _is_number(value: Any) -> bool:
    """Whether it is one integer, also as a tensor."""
    if isinstance(value, bool):
        return False
    if tf.is_tensor(value) and not isinstance(value, tf.SparseTensor):
        return bool(value.shape.rank == 0 and value.dtype.is_integer)
    return isinstance(value, numbers.Integral) or (isinstance(value, np.ndarray) and value.ndim == 0)
