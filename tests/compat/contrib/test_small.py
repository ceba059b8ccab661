"""Small functions of tf.contrib.framework, tf.contrib.lookup and the paths of contrib's sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf2

import tfqueue.compat.v1 as tf
from tfqueue.errors import CannotRestore, InvalidArgument


def value(build):
    with tf2.Graph().as_default(), tf.Session() as session:
        tensors = build()
        session.run(tf.tables_initializer())
        return session.run(tensors)


def test_conditions_that_are_known() -> None:
    framework = tf.contrib.framework
    with tf2.Graph().as_default(), tf.Session() as session:
        assert framework.smart_cond(True, lambda: "a", lambda: "b") == "a"
        assert framework.smart_cond(tf.constant(False), lambda: "a", lambda: "b") == "b"
        unknown = tf.placeholder(tf.bool, [])
        chosen = framework.smart_cond(unknown, lambda: tf.constant(1), lambda: tf.constant(2), name="choice")
        assert session.run(chosen, {unknown: False}) == 2
        assert framework.smart_constant_value(unknown) is None
        assert framework.smart_constant_value(0) is False
        with pytest.raises(InvalidArgument, match="must be a bool"):
            framework.smart_constant_value("yes")
        with pytest.raises(InvalidArgument, match="must be functions"):
            framework.smart_cond(True, 1, 2)
        with tf.name_scope("outer"):
            assert framework.get_name_scope() == "outer"


def test_shapes_and_sums() -> None:
    framework = tf.contrib.framework
    with tf2.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        checked = framework.with_shape([2, None], x)
        assert checked.shape.as_list() == [2, None]
        same = framework.with_same_shape(tf.placeholder_with_default(np.zeros((2, 3), np.float32), [None, 3]), x)
        assert session.run([checked, same], {x: np.ones((2, 3))})[1].shape == (2, 3)
        for tensor in (checked, same):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(tensor, {x: np.ones((3, 3))})
        assert framework.assert_scalar_int(tf.constant(3)).dtype == tf.int32
        with pytest.raises(InvalidArgument, match="float32 of shape"):
            framework.assert_scalar_int(1.5)
        sparse = framework.convert_to_tensor_or_sparse_tensor(tf.SparseTensorValue([[0]], [1.0], [2]))
        assert isinstance(sparse, tf.SparseTensor)
        with pytest.raises(InvalidArgument, match="holds float32, not int32"):
            framework.convert_to_tensor_or_sparse_tensor(sparse, tf.int32)
        labels, predictions = framework.remove_squeezable_dimensions(tf.zeros([4, 1]), tf.zeros([4]))
        assert labels.shape == predictions.shape == [4]
        assert session.run(framework.reduce_sum_n([tf.ones([3]), tf.ones([2, 2])])) == 7


WORDS = [b"the", b"cat", b"sat"]


def test_tables_of_words(tmp_path: Path) -> None:
    lookup = tf.contrib.lookup
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_bytes(b"\n".join(WORDS))
    asked = tf2.constant([b"sat", b"dog", b"the"])

    def build():
        table = lookup.HashTable(lookup.KeyValueTensorInitializer(WORDS, [10, 20, 30]), -1, "shared", "words")
        assert isinstance(table.init, tf.Operation)
        by_tensor = lookup.index_table_from_tensor(WORDS, 2, -1, lookup.FastHashSpec, tf.string, "n")
        by_file = lookup.index_table_from_file(str(vocabulary), 0, None, -7, lookup.FastHashSpec, tf.string)
        asked = tf.constant([b"sat", b"dog", b"the"])
        mutable = lookup.MutableHashTable(tf.string, tf.int64, -1)
        with tf.control_dependencies([mutable.insert(tf.constant(WORDS), tf.constant([5, 6, 7], tf.int64))]):
            inserted = mutable.lookup(asked)
        return {
            "table": table.lookup(asked),
            "tensor": by_tensor.lookup(asked),
            "file": by_file.lookup(asked),
            "index": lookup.string_to_index(asked, WORDS),
            "string": lookup.index_to_string(tf.constant([2, 9]), WORDS, "none"),
            "mutable": inserted,
        }

    found = value(build)
    assert found["table"].tolist() == [30, -1, 10]
    assert found["tensor"][[0, 2]].tolist() == [2, 0]
    assert found["tensor"][1] in (3, 4)
    assert found["file"].tolist() == [2, -7, 0]
    assert found["index"].tolist() == [2, -1, 0]
    assert found["string"].tolist() == [b"sat", b"none"]
    assert found["mutable"].tolist() == [7, -1, 5]
    assert asked.shape == [3]
    with pytest.raises(InvalidArgument, match="only be hashed by FastHashSpec"):
        lookup.index_table_from_tensor(WORDS, 1, hasher_spec=None)


def test_integers_from_a_column_of_a_file(tmp_path: Path) -> None:
    vocabulary = tmp_path / "ids.csv"
    vocabulary.write_text("a,7\nb,9\n")

    def build():
        table = tf.contrib.lookup.index_table_from_file(
            str(vocabulary), key_dtype=tf.int32, key_column_index=1, delimiter=","
        )
        return table.lookup(tf.constant([9, 8, 7], tf.int64))

    assert value(build).tolist() == [1, -1, 0]


def test_paths_of_the_sources_of_contrib() -> None:
    contrib = tf.contrib
    assert contrib.layers.python.layers.initializers.xavier_initializer is contrib.layers.xavier_initializer
    assert contrib.layers.python.layers.conv2d is contrib.layers.conv2d
    assert contrib.training.python.training.hparam.HParams is contrib.training.HParams
    assert contrib.framework.python.ops.variables.model_variable is contrib.framework.model_variable
    assert contrib.slim.python.slim.nets.vgg.vgg_16 is contrib.slim.nets.vgg.vgg_16
    with pytest.raises(AttributeError, match=r"module 'tensorflow\.contrib\.layers' has no attribute 'nothing'"):
        contrib.layers.python.nothing  # noqa: B018
    with pytest.raises(CannotRestore, match="tensorflow_model_optimization"):
        contrib.quantize.create_training_graph  # noqa: B018
