"""A tf.data.Dataset as a picture of its data flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfqueue.topology.dataset import DatasetChain
from tfqueue.views import style
from tfqueue.views.flow import BATCH, BUFFER, SOURCE, STAGE, Step, draw_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"source": SOURCE, "buffer": BUFFER, "batch": BATCH, "stage": STAGE}


def draw_chain(chain: DatasetChain) -> Figure:
    """Draw the chain of transformations of a Dataset."""
    steps = [
        Step(
            part.name, part.name, part.title, part.lines, _COLOURS[part.kind], [(source, "") for source in part.sources]
        )
        for part in chain.transformations
    ]
    last = chain.transformations[0]
    steps.append(Step("delivers", "delivers", "Delivers", [chain.delivers], STAGE, [(last.name, "")]))
    left = chain.length - len(chain.transformations)
    more = f"; {left} more before them are not shown" if left else ""
    return draw_flow(steps, f"Dataset of {style.plural(chain.length, 'step')}", f"{chain.elements}{more}.", [])
