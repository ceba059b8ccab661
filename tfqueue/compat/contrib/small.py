"""Small functions of tf.contrib.framework and tf.contrib.rnn that programs use and today's TensorFlow lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfqueue.compat import legacy_layers
from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a condition where it is known while the graph is built, or None."""
    if isinstance(pred, bool) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if not tf.is_tensor(pred):
        raise InvalidArgument(f"pred must be a bool, 0, 1 or a tensor; got {pred!r}")
    value = tf.get_static_value(pred)
    return None if value is None else bool(value)


def smart_cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """tf.cond, or only one of the two functions where ``pred`` is known while the graph is built."""
    if not callable(true_fn) or not callable(false_fn):
        raise InvalidArgument("true_fn and false_fn must be functions")
    known = smart_constant_value(pred)
    if known is None:
        return tf1.cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()


def get_name_scope() -> str:
    """The name scope of the default graph, without a slash at the end."""
    return str(tf1.get_default_graph().get_name_scope())


def assert_scalar_int(tensor: Any, name: str | None = None) -> Any:
    """The tensor, which is an integer scalar.

    Raises:
        InvalidArgument: It is not.
    """
    with tf1.name_scope(name, "assert_scalar_int", [tensor]):
        tensor = tf.convert_to_tensor(tensor)
        if not tensor.dtype.is_integer or not tensor.shape.is_compatible_with([]):
            raise InvalidArgument(f"must be an integer scalar; got {tensor.dtype.name} of shape {tensor.shape}")
        return tensor


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A SparseTensor (also from its value in numpy), or a tensor of what else it is."""
    if isinstance(value, tf1.SparseTensorValue):
        value = tf.SparseTensor(*value)
    if not isinstance(value, tf.SparseTensor):
        return tf1.convert_to_tensor(value, dtype=dtype, name=name)
    if dtype is not None and not tf.as_dtype(dtype).is_compatible_with(value.dtype):
        raise InvalidArgument(f"the SparseTensor holds {value.dtype.name}, not {tf.as_dtype(dtype).name}")
    return value


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    """The tensor, whose shape is checked, when the graph is built or else when it runs."""
    if not tf.is_tensor(expected_shape):
        return tf.ensure_shape(tensor, expected_shape)
    known = tf.get_static_value(expected_shape)
    if known is not None:
        return tf.ensure_shape(tensor, known.tolist())
    message = "the tensor has another shape than expected"
    with tf.control_dependencies([tf1.assert_equal(expected_shape, tf.shape(tensor), message=message)]):
        return tf.identity(tensor)


def with_same_shape(expected_tensor: Any, tensor: Any) -> Any:
    """The tensor, whose shape is checked to be that of ``expected_tensor``."""
    shape = tf.convert_to_tensor(expected_tensor).shape
    return with_shape(shape if shape.is_fully_defined() else tf.shape(expected_tensor), tensor)


def remove_squeezable_dimensions(
    predictions: Any, labels: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Any, Any]:
    """(labels, predictions), without a last dimension of size 1 that only one of them has."""
    with tf1.name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        if predictions.shape.rank is not None and labels.shape.rank is not None:
            more = predictions.shape.rank - labels.shape.rank - expected_rank_diff
            if more == 1 and predictions.shape[-1] in (1, None):
                predictions = tf.squeeze(predictions, [-1])
            elif more == -1 and labels.shape[-1] in (1, None):
                labels = tf.squeeze(labels, [-1])
        return labels, predictions


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> Any:
    """The sum of all elements of all tensors."""
    if not tensors:
        raise InvalidArgument("tensors is empty: there is nothing to sum")
    with tf1.name_scope(name, "reduce_sum_n", list(tensors)):
        return tf.add_n([tf.reduce_sum(tensor) for tensor in tensors])


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional recurrent cells; each layer sees both outputs of the one before, side by side.

    Args:
        cells_fw: One cell a layer that reads forward.
        cells_bw: One cell a layer that reads backward.
        inputs: [batch, steps, size], or [steps, batch, size] with ``time_major``.
        initial_states_fw: One state a layer.
        initial_states_bw: One state a layer.
        dtype: Of the states, where none are given.
        sequence_length: [batch] integers.
        parallel_iterations: As of tf.nn.dynamic_rnn.
        time_major: Of ``inputs`` and the output.
        scope: The variable scope; ``stack_bidirectional_rnn`` unless given.

    Returns:
        The output of the last layer, both directions side by side, and the final states of each direction by layer.

    Raises:
        InvalidArgument: The lists are empty or of different lengths.
    """
    cells = list(zip(cells_fw, cells_bw, strict=False))
    for argument, values in (
        ("cells_bw", cells_bw),
        ("initial_states_fw", initial_states_fw),
        ("initial_states_bw", initial_states_bw),
    ):
        if values is not None and len(values) != len(cells_fw):
            raise InvalidArgument(f"{argument} has {len(values)} entries for the {len(cells_fw)} of cells_fw")
    if not cells:
        raise InvalidArgument("cells_fw is empty: there is no layer")
    states_fw, states_bw, output = [], [], inputs
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        for layer, (forward, backward) in enumerate(cells):
            with tf1.variable_scope(f"cell_{layer}"):
                outputs, (state_fw, state_bw) = tf1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    output,
                    sequence_length=sequence_length,
                    initial_state_fw=initial_states_fw[layer] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[layer] if initial_states_bw else None,
                    dtype=dtype,
                    parallel_iterations=parallel_iterations,
                    time_major=time_major,
                )
            output = tf.concat(outputs, axis=2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return output, tuple(states_fw), tuple(states_bw)


def transpose_batch_time(x: Any) -> Any:
    """[batch, steps, ...] as [steps, batch, ...], and the other way round."""
    x = tf.convert_to_tensor(x)
    return tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], axis=0))


def LSTMBlockCell(  # noqa: N802 - a class once
    num_units: int,
    forget_bias: float = 1.0,
    cell_clip: float | None = None,
    use_peephole: bool = False,
    dtype: Any = None,
    reuse: Any = None,
    name: str = "lstm_cell",
) -> Any:
    """A BasicLSTMCell, which computes the same with the same variables (in several ops where this one was a single op).

    Raises:
        InvalidArgument: ``cell_clip`` or ``use_peephole``, which a BasicLSTMCell does not have.
    """
    if use_peephole or (cell_clip is not None and cell_clip > 0):
        raise InvalidArgument("LSTMBlockCell with cell_clip or use_peephole is not restored: tf.nn.rnn_cell.LSTMCell")
    return legacy_layers.BasicLSTMCell(num_units, forget_bias=forget_bias, reuse=reuse, name=name, dtype=dtype)
