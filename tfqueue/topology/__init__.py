"""The topology of a pipeline: the model, how it is read out of a graph, and how it is told to people.

Only the model is imported here, which needs no TensorFlow; ``tfqueue.trace`` makes one.
"""

from tfqueue.topology.model import (
    Decode,
    Dequeue,
    Enqueue,
    Feature,
    ParseSpec,
    Producer,
    Queue,
    Read,
    Reader,
    Runner,
    TensorInfo,
    Topology,
    Transform,
    Unknown,
)

__all__ = [
    "Decode",
    "Dequeue",
    "Enqueue",
    "Feature",
    "ParseSpec",
    "Producer",
    "Queue",
    "Read",
    "Reader",
    "Runner",
    "TensorInfo",
    "Topology",
    "Transform",
    "Unknown",
]
