"""From what a runner or a step raised to a cause, the place where it arose, and what to do about it.

``failure.failure`` makes the error of a run, ``building.failure_of_build`` that of a build function.
"""
