"""What a step of the lockstep engine does to the queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfqueue.engines.lockstep_queue import Cut, QueueState


@dataclass(eq=False, slots=True)
class Plan:
    """What a step takes from the queues, and what it puts into some.

    Args:
        cuts: Its dequeues and reads.
        touched: The queues of its own enqueues.
        elements: What it fetches.
    """

    cuts: list[Cut]
    touched: list[QueueState]
    elements: list[Any]
    busy: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether it can have to wait for something that is not in the schedule."""
        return any(cut.may_wait for cut in self.cuts)

    def step_begins(self) -> None:
        """Count what the step takes before it does: other threads look at the queues meanwhile."""
        for cut in self.cuts:
            cut.step_begins()
        for state in self.touched:
            state.forget_size()
            state.step_begins(0)
