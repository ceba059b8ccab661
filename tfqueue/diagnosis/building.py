"""What TensorFlow refuses while a build function builds its graph, with advice."""

from __future__ import annotations

import re

from tfqueue.errors import PipelineFailed


def failure_of_build(error: BaseException, source: str | None) -> PipelineFailed | None:
    """The PipelineFailed for what TensorFlow raised while a build function built its graph; None if not known."""
    message = str(error)
    known = next((entry for entry in _BUILD_ERRORS if entry[1].search(message)), None)
    if known is None:
        return None
    cause_name, _, advice = known
    shapes = re.findall(r"TensorShape\(([^)]*)\)", message)
    if shapes and cause_name == "shapes-not-defined":
        open_ones = [f"{n} ({shape})" for n, shape in enumerate(shapes) if "None" in shape]
        advice = f"tensor number {', '.join(open_ones)} of those given has an open shape: {advice}"
    words = [f"the pipeline cannot be built: {message}"]
    if source is not None:
        words.append(f"  built at: {source}")
    words.append(f"  advice: {advice}")
    failed = PipelineFailed("\n".join(words), cause_name=cause_name, source=source, advice=advice)
    failed.__cause__ = error
    return failed


_BUILD_ERRORS = tuple(
    (cause_name, re.compile(pattern), advice)
    for cause_name, pattern, advice in (
        (
            "shapes-not-defined",
            r"^All shapes must be fully defined",
            "give it one with tf.reshape or set_shape (an image: resize it, or image.set_shape([height, width, 3])), "
            "or pad with dynamic_pad=True",
        ),
        (
            "no-files",
            r"^string_input_producer requires a non-null input tensor",
            "the list of file names is empty: check the folder and the pattern that it was made from",
        ),
        (
            "graph-reset",
            r"^Do not use tf\.reset_default_graph\(\) to clear nested graphs",
            "leave tf.reset_default_graph() out: the build function is called in a fresh graph",
        ),
        (
            "capacity",
            r"^capacity \d+ must be bigger than min_after_dequeue \d+",
            "set capacity to min_after_dequeue + (number of threads + a few) * batch_size",
        ),
        (
            "feature-dtype",
            r"DataType \w+ not in list of allowed values: float32, int64, string",
            "a record stores only float32, int64 and strings: ask the feature for one of them, and tf.cast the result",
        ),
        (
            "tensor-as-bool",
            r"[Uu]sing a symbolic `?tf\.Tensor`? as a Python `?bool`?",
            "TensorFlow tests a value of the graph in Python: use tf.cond, or, where an input producer is given a "
            "variable, give it tf.identity(variable)",
        ),
    )
)
