"""What TensorFlow refuses while a build function builds its graph, with advice."""

from __future__ import annotations

import re

from tfqueue.errors import PipelineFailed


def failure_of_build(error: BaseException, source: str | None) -> PipelineFailed | None:
    """The PipelineFailed for what TensorFlow raised while a build function built its graph; None if not known."""
    message = str(error)
    known = _BUILD_ERRORS.get(message.partition(":")[0].strip())
    if known is None or not isinstance(error, ValueError):
        return None
    cause_name, advice = known
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


_BUILD_ERRORS = {
    "All shapes must be fully defined": (
        "shapes-not-defined",
        "give it one with tf.reshape or set_shape (an image: resize it, or image.set_shape([height, width, 3])), "
        "or pad with dynamic_pad=True",
    ),
    "string_input_producer requires a non-null input tensor": (
        "no-files",
        "the list of file names is empty: check the folder and the pattern that it was made from",
    ),
}
