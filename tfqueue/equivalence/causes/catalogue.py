"""The names of the causes: stable, for programs; with what was done and what to change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A cause in words.

    Attributes:
        summary: What was probably done.
        advice: What to change.
    """

    summary: str
    advice: str


CATALOGUE: dict[str, Entry] = {
    # Structure
    "key-renamed": Entry("a feature has another name", "rename it where the batch is put together"),
    "feature-missing": Entry("a feature is not delivered", "add it to what the candidate returns"),
    "feature-added": Entry("a feature is delivered that the reference lacks", "leave it out, or add it to both"),
    "features-reordered": Entry("the features come in another order", "return them in the reference's order"),
    "not-batched": Entry("one side delivers single records", "batch both sides, or neither"),
    "sparse-dense": Entry("a feature is sparse or ragged on one side only", "tf.sparse.to_dense, or parse it alike"),
    "one-hot": Entry("labels are one-hot on one side only", "apply tf.one_hot on both sides, or on neither"),
    "one-hot-depth": Entry("one-hot labels have another depth", "give tf.one_hot the reference's depth"),
    "dtype-changed": Entry("the values are the same in another dtype", "tf.cast to the reference's dtype"),
    "reshaped": Entry(
        "the values are the same, in a shape with more or fewer axes", "tf.reshape to the reference's shape"
    ),
    "padding-value": Entry(
        "short records are filled up with another value", "set padding_values; a queue pads with 0 or ''"
    ),
    "padding-length": Entry("short records are filled up to another length", "pad to the longest record of the batch"),
    "truncated": Entry("long records are cut", "do not cut, or cut both sides alike"),
    # Stream
    "remainder-kept": Entry(
        "the last, smaller batch is kept", "batch(..., drop_remainder=True), as tf.train.batch does"
    ),
    "remainder-dropped": Entry("the last, smaller batch is dropped", "batch(..., drop_remainder=False)"),
    "batch-size": Entry("the batches have another size", "give batch() the reference's batch size"),
    "batch-before-repeat": Entry("batch() comes before repeat()", "repeat(n).batch(b): a queue's batches cross epochs"),
    "shuffle-before-repeat": Entry(
        "shuffle() comes before repeat(), so that no epoch reaches into the next",
        "repeat(n).shuffle(k), as a queue does",
    ),
    "repeat-before-shuffle": Entry("repeat() comes before shuffle(), so that epochs blur", "shuffle(k).repeat(n)"),
    "no-reshuffle": Entry("every epoch has the same order", "shuffle(..., reshuffle_each_iteration=True)"),
    "not-shuffled": Entry("one side is shuffled, the other is not", "add shuffle(min_after_dequeue), or leave it out"),
    "buffer-too-small": Entry(
        "records move less far: the shuffle buffer is smaller", "shuffle(min_after_dequeue) at least"
    ),
    "buffer-too-large": Entry("records move farther: the shuffle buffer is larger", "shuffle(min_after_dequeue)"),
    "batch-before-shuffle": Entry(
        "batch() comes before shuffle(), so that the records of a batch stay together", "shuffle(k).batch(b)"
    ),
    "epochs-differ": Entry("the data are read another number of times", "repeat() as often as num_epochs says"),
    "file-missing": Entry("a block of records, such as a file, is missing", "compare the lists of files"),
    "file-twice": Entry("a block of records, such as a file, is read twice", "compare the lists of files"),
    "file-order": Entry("blocks of records, such as files, come in another order", "sort the list of files alike"),
    "first-record-lost": Entry(
        "the first record of each block, such as a file, is lost", "look for skip(1) or a header line"
    ),
    "last-record-lost": Entry(
        "the last record of each block, such as a file, is lost", "look at the end of each file: take, drop_remainder"
    ),
    "records-lost": Entry("records are lost", "look for a filter, skip, take or shard"),
    "records-doubled": Entry("records are delivered twice", "look for a doubled file name or repeat"),
    "order-changed": Entry("the records come in another order", "look at shuffle, interleave and num_parallel_calls"),
    # Pairing
    "label-shifted": Entry(
        "a feature is shifted by records against the others", "zip the features before anything is skipped or shuffled"
    ),
    "mispaired": Entry(
        "features of different records stand together", "shuffle and batch the features together, in one Dataset"
    ),
    "mispaired-reference": Entry(
        "the reference pairs features of different records, and others in each run",
        "two producers dequeued by several threads race: use one thread or one producer there",
    ),
    "consumers-race": Entry(
        "several consumers of one queue race for its batches",
        "give each consumer its share: one iterator, one get_next each; compare one consumer at a time",
    ),
    "random-values": Entry(
        "a side makes other values in each run", "seed its random ops, or leave them out to compare"
    ),
    # Values
    "label-off-by-one": Entry("integers are off by a constant", "count classes from the same number on both sides"),
    "labels-mapped": Entry("integers are mapped to others, one to one", "use the same vocabulary or class order"),
    "elements-reordered": Entry(
        "the elements of a feature come in another order", "look at the order of columns, coordinates and time"
    ),
    "scale-255": Entry(
        "values are scaled by 255", "divide by 255 (or convert_image_dtype) on both sides, or on neither"
    ),
    "scale-127": Entry("values are scaled to -1..1", "x / 127.5 - 1 on both sides, or on neither"),
    "scaled": Entry("values are scaled or moved by constants", "use the same factor and offset"),
    "mean-subtracted": Entry("a mean is subtracted on one side", "subtract the same mean on both sides"),
    "standardised": Entry(
        "each record is standardised on one side", "per_image_standardization on both sides, or on neither"
    ),
    "normalised": Entry(
        "each record is scaled by constants of its own on one side",
        "normalise each record on both sides, or on neither",
    ),
    "clipped": Entry("values are clipped on one side", "clip to the same limits on both sides, or on neither"),
    "function-applied": Entry(
        "a function is applied to each value on one side", "apply the same function on both sides, or on neither"
    ),
    "float-narrowing": Entry("floats went through a narrower dtype", "keep the reference's dtype throughout"),
    "int-narrowing": Entry("integers went through another, narrower dtype", "keep a dtype that holds all values"),
    "truncated-to-int": Entry("fractions were cut off or rounded away", "keep a float dtype throughout"),
    "rounding": Entry(
        "the same numbers, rounded otherwise in the last digits",
        "compare with rtol=1e-6 (an optimiser may turn x / 255 into x * (1 / 255))",
    ),
    "byte-order": Entry(
        "bytes were read in the other byte order", "decode_raw(..., little_endian=...) as it was written"
    ),
    "decode-dtype": Entry("bytes were read as another dtype", "give decode_raw the dtype that was written"),
    # Images
    "channels-swapped": Entry(
        "colour channels are exchanged (RGB against BGR)", "reverse the last axis: image[..., ::-1]"
    ),
    "grayscale": Entry("images have no colour on one side", "decode with channels=3 on both sides, or with 1"),
    "transposed": Entry("images are transposed", "check the order of height and width in reshape"),
    "flipped": Entry("images are flipped", "look for flip_left_right, flip_up_down, rot90"),
    "channels-first": Entry(
        "the channel axis stands elsewhere (NCHW against NHWC)", "tf.transpose to the reference's layout"
    ),
    "cropped": Entry("another part of the image is cut out", "look at crop offsets, central_crop and random_crop"),
    "resize-half-pixel": Entry(
        "v1 against v2 resize: pixel centres (half_pixel_centers) differ",
        "tf.compat.v1.image.resize_* keeps the old numbers; tf.image.resize has half-pixel centres",
    ),
    "resize-align-corners": Entry(
        "resized with another align_corners", "give tf.compat.v1.image.resize_* the same align_corners"
    ),
    "resize-kernel": Entry("resized with another kernel", "give resize the same method"),
    "resize-antialias": Entry("resized with antialiasing on one side", "set antialias alike"),
    "jpeg-dct": Entry(
        "JPEG decoded with another inverse DCT", "decode_jpeg(..., dct_method='INTEGER_ACCURATE') on both sides"
    ),
    "jpeg-upscaling": Entry("JPEG decoded with another chroma upscaling", "set fancy_upscaling alike"),
    "re-encoded": Entry("images were encoded anew, with loss", "store and read the original bytes"),
}

NAMES: tuple[str, ...] = tuple(CATALOGUE)
