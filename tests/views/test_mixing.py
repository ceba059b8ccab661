"""plot_mixing: the numbers in the picture are those of the shuffle that was made."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views import pictures
from tfqueue import compare, errors, views
from tfqueue.views.mixing import density
from tfqueue.views.orders import Delivery, deliveries

tf1 = tf.compat.v1


def delivery(source, size=None):
    source = np.asarray(source)
    return Delivery("stream", source, np.arange(len(source)), size or int(source.max()) + 1)


def stream(order, batch=8):
    """Batches of records, each with its number, a label and a value."""
    order = np.asarray(order)
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        yield {"index": part, "label": part // 10, "value": np.sqrt(part)[:, np.newaxis]}


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(1, 4), st.randoms(use_true_random=False))
def test_displacement_is_delivered_minus_source_position(size, epochs, random):
    orders = []
    for _ in range(epochs):
        order = list(range(size))
        random.shuffle(order)
        orders.append(order)
    found = delivery(np.concatenate(orders), size)
    expected = [place - position for order in orders for place, position in enumerate(order)]
    assert found.displacement.tolist() == expected
    assert found.epoch.tolist() == [number for number in range(epochs) for _ in range(size)]
    assert found.epochs == epochs
    assert found.blurred == 0


def test_a_uniform_shuffle_is_a_full_one():
    rng = np.random.default_rng(0)
    mixing = np.mean([delivery(rng.permutation(2000)).mixing for _ in range(5)])
    assert mixing > 0.97
    assert delivery(np.arange(2000)).mixing == 0


@pytest.mark.parametrize("buffer", [2, 17, 100])
def test_the_size_of_a_tf_data_shuffle_buffer_is_seen(buffer):
    order = list(tf.data.Dataset.range(1000).shuffle(buffer, seed=1).as_numpy_iterator())
    found = delivery(np.array(order))
    # A buffer of n lets no record come more than n - 1 places early (and in 1000 records some do come so early).
    assert -found.displacement.min() == buffer - 1
    said = f"a shuffle buffer of about {buffer} for 1000 records is small."
    assert any(said in alarm for alarm in found.alarms()) == (buffer < 100)


def test_a_full_shuffle_raises_no_alarm():
    found = delivery(np.concatenate([np.random.default_rng(n).permutation(500) for n in range(3)]))
    assert found.alarms() == []


def test_an_epoch_that_is_not_shuffled():
    random = np.random.default_rng(4)
    orders = [random.permutation(100), np.arange(100), random.permutation(100), np.arange(100), [0, 1]]
    found = delivery(np.concatenate(orders))
    assert "epochs 2, 4 are not shuffled, unlike the others." in found.alarms()
    assert delivery(np.concatenate([orders[0], orders[1]])).alarms()[0].startswith("epoch 2 is not shuffled")
    assert delivery(np.concatenate([np.arange(100), [0, 1]])).unshuffled_epochs() == []


def test_a_stream_of_other_records_is_not_called_unshuffled():
    figure = views.plot_mixing(stream(np.arange(20)), stream(np.arange(50, 70)), source=stream(np.arange(20)[::-1]))
    assert pictures.words(figure)[0].endswith("candidate unknown")


def test_not_shuffled_at_all():
    found = delivery(np.tile(np.arange(50), 3))
    assert found.facts() == ["in the order of the source, not shuffled"]
    assert found.alarms() == []


def test_epochs_in_one_order():
    order = np.random.default_rng(3).permutation(100)
    assert "epochs 1 and 2 have the same order." in delivery(np.r_[order, order]).alarms()
    assert "epochs 2 and 3 have the same order." in delivery(np.r_[np.arange(100)[::-1], order, order]).alarms()


def test_blurred_epochs_are_counted():
    # tf.data: repeat before shuffle.
    dataset = tf.data.Dataset.range(200).repeat(2).shuffle(100, seed=2)
    blurred = delivery(np.array(list(dataset.as_numpy_iterator())))
    assert blurred.blurred > 0.05
    kept = delivery(np.array(list(tf.data.Dataset.range(200).shuffle(100, seed=2).repeat(2).as_numpy_iterator())))
    assert kept.blurred == 0


def test_positions_by_key_by_source_and_by_reference():
    order = np.random.default_rng(5).permutation(60)
    for options in ({"key": "index"}, {"source": stream(np.arange(60))}):
        found, _ = deliveries(stream(order), None, max_records=1000, **options)
        np.testing.assert_array_equal(found[0].source, order)
    found, words = deliveries(stream(np.arange(60)), stream(order), max_records=1000)
    assert [side.name for side in found] == ["candidate"]
    assert words == "the order of the reference"
    np.testing.assert_array_equal(found[0].source, order)


def test_records_that_are_not_in_the_source():
    found, _ = deliveries(stream([0, 1, 99, 2]), None, source=stream(np.arange(10)), max_records=100)
    assert found[0].source.tolist() == [0, 1, -1, 2]
    assert found[0].alarms()[0] == "1 of its records are not in the source."


def test_labels_over_the_batches():
    figure = views.plot_mixing(stream(np.arange(80)), key="index")
    axes = next(axes for axes in figure.axes if axes.get_label() == "labels of the stream")
    shares = axes.images[0].get_array()
    assert shares.shape == (8, 10)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    # Batch 0 holds the records 0 to 7, all of label 0; batch 1 those from 8 to 15.
    assert shares[0, 0] == 1
    assert shares[:2, 1].tolist() == [0.25, 0.75]


def test_every_record_is_a_dot_where_it_belongs():
    order = np.random.default_rng(6).permutation(40)
    figure = views.plot_mixing(order)
    dots = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(dots, np.stack([np.arange(40), order], axis=1))
    edges = figure.axes[1].patches[0].get_data()
    assert edges.values.sum() == 40


def test_many_records_are_a_density_with_every_record_in_it():
    place = np.arange(20_000)
    source = np.random.default_rng(7).permutation(20_000)
    picture = density(place, source, np.zeros(20_000, int), 20_000, 20_000)
    assert picture.shape == (110, 110, 3)
    assert ((picture >= 0) & (picture <= 1)).all()
    diagonal = density(place, place, np.zeros(20_000, int), 20_000, 20_000)
    dark = (diagonal < 0.5).all(axis=-1)
    np.testing.assert_array_equal(dark, np.eye(110, dtype=bool))


def test_two_sides_and_a_picture(tmp_path):
    rng = np.random.default_rng(8)
    path = tmp_path / "mixing.png"
    figure = views.plot_mixing(rng.permutation(300), np.arange(300), path)
    assert pictures.words(figure)[0].startswith("Reference mixed to 100% of a full shuffle")
    assert pictures.words(figure)[0].endswith("candidate not shuffled")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_only_so_many_records_are_read():
    def endless():
        number = 0
        while True:
            yield {"index": np.arange(number, number + 8)}
            number += 8

    found, _ = deliveries(endless(), None, key="index", max_records=100)
    assert len(found[0].source) == 100


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((stream(np.arange(9)),), {}, "give source= .* key= .* or a second stream"),
        ((iter([]),), {"key": "index"}, "the reference is empty"),
        (
            (stream(np.arange(9)),),
            {"key": "number"},
            "key='number': the reference has no such feature",
        ),
        (([np.zeros((2, 3))],), {"key": "value"}, "expected one value a record, found shape \\[3\\]"),
        ((np.arange(5),), {"max_records": 1}, "max_records=1"),
        (([np.arange(5)], 5), {}, "candidate is an int, which is no stream of batches"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        views.plot_mixing(*arguments, **options)


def test_a_report_of_plain_streams_shows_the_candidate_against_the_reference():
    order = np.random.default_rng(10).permutation(80)
    report = compare(list(stream(np.arange(80))), list(stream(order)), order="any")
    found, words = deliveries(report, None, max_records=1000)
    assert [side.name for side in found] == ["candidate"]
    assert words == "the order of the reference"
    np.testing.assert_array_equal(found[0].source, order)
    np.testing.assert_array_equal(found[0].batch, np.arange(80) // 8)
    figure = views.plot_mixing(report)
    assert pictures.words(figure)[0].startswith("Candidate mixed to")
    with pytest.raises(errors.InvalidArgument, match="give it alone"):
        views.plot_mixing(report, [np.arange(3)])


def test_a_report_of_a_shuffled_pipeline_knows_its_source():
    tf1 = tf.compat.v1

    def build():
        number = tf1.train.range_input_producer(1200, num_epochs=1, shuffle=False).dequeue()
        return {"index": tf1.train.shuffle_batch([number], 8, 200, 100, seed=1)}

    def dataset():
        return tf.data.Dataset.range(1200).map(lambda n: {"index": tf.cast(n, tf.int32)}).shuffle(20, seed=1).batch(8)

    found, words = deliveries(compare(build, dataset), None, max_records=10_000)
    assert words == "the reference run without shuffling"
    assert [side.name for side in found] == ["reference", "candidate"]
    # The queue holds 100 to 200 records, the buffer of the candidate 20.
    assert 99 <= -found[0].displacement.min() <= 200
    assert -found[1].displacement.min() == 19
    assert "a shuffle buffer of about 20 for 1200 records is small." in found[1].alarms()[0]


def test_a_report_without_orders_or_records():
    import dataclasses

    report = compare([np.arange(3)], [np.arange(3)])
    with pytest.raises(errors.InvalidArgument, match="does not hold the order"):
        views.plot_mixing(dataclasses.replace(report, orders=None))


def test_goldens_are_enough(tmp_path):
    from tfqueue import record_golden

    order = np.random.default_rng(9).permutation(60)
    for name, numbers in (("source", np.arange(60)), ("shuffled", order)):
        record_golden(list(stream(numbers)), tmp_path / f"{name}.golden")
    found, _ = deliveries(
        str(tmp_path / "shuffled.golden"), None, source=str(tmp_path / "source.golden"), max_records=100
    )
    np.testing.assert_array_equal(found[0].source, order)


def test_equal_records_of_a_source_are_records_of_their_own():
    numbers = np.array([5, 7, 5, 9])

    def batches(order):
        return [{"x": numbers[np.asarray(order)]}]

    found, _ = deliveries(batches([2, 3, 0, 1, 0, 1, 2, 3]), None, source=batches([0, 1, 2, 3]), max_records=100)
    # The first 5 delivered in an epoch is taken for the first of the source.
    assert found[0].source.tolist() == [0, 3, 2, 1, 0, 1, 2, 3]
    assert found[0].epoch.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found[0].size == 4


def test_records_unknown_to_the_source_make_no_epochs():
    found, _ = deliveries(stream([0, 50, 60, 70, 1, 2]), None, source=stream(np.arange(10)), max_records=100)
    assert found[0].epochs == 1


def test_a_report_draws_the_labels_of_each_batch(monkeypatch):
    monkeypatch.setattr("tfqueue.equivalence.followed._RECORDS", 600)

    def build():
        number = tf1.train.range_input_producer(1200, num_epochs=1, shuffle=False).dequeue()
        n, label = tf1.train.shuffle_batch([number, number // 300], 8, 200, 100, seed=1)
        return {"n": n, "label": label}

    def candidate():
        made = tf.data.Dataset.range(1200).map(lambda n: tf.cast(n, tf.int32))
        return made.map(lambda n: {"n": n, "label": n // 300}).shuffle(150, seed=1).batch(8)

    report = compare(build, candidate)
    figure = views.plot_mixing(report)
    drawn = {axes.get_label(): axes for axes in figure.axes}
    shares = drawn["labels of the reference"].images[0].get_array()
    # 75 batches with labels are kept; the queue holds 200 records, so that the first batch can have one label only.
    assert shares.shape == (3, 75)
    assert shares[:, 0].tolist() == [1, 0, 0]
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    assert "labels of the candidate" in drawn
    assert [t.get_text() for t in drawn["labels of the candidate"].get_yticklabels()] == ["0", "1", "2"]


def test_the_epochs_of_a_report_are_told_apart():
    def build(epochs=3, records=200):
        values = np.arange(records) % 200
        number = tf1.train.input_producer(values, num_epochs=epochs, shuffle=False).dequeue()
        return {"n": tf1.train.shuffle_batch([number], 8, 60, 40, seed=1)}

    def candidate(buffer):
        return tf.data.Dataset.range(200).map(lambda n: {"n": n}).repeat(3).shuffle(buffer, seed=1).batch(8)

    report = compare(build, lambda: candidate(50))
    found, _ = deliveries(report, None, max_records=10_000)
    assert [(side.size, side.epochs) for side in found] == [(200, 3), (200, 3)]
    assert all(0 < side.blurred < 0.5 for side in found)
    assert "3 epochs, a colour for each" in pictures.words(views.plot_mixing(report))[1]
    # One epoch that holds each record three times is one epoch.
    found, _ = deliveries(compare(lambda: build(1, 600), lambda: candidate(50)), None, max_records=10_000)
    assert [side.size for side in found] == [600, 600]
