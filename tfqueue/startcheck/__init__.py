"""What can be seen before a pipeline is started: files, the first record, queues that cannot work or that surprise.

``check_before_start`` raises what cannot work and returns what probably was not meant.
"""

from tfqueue.startcheck.check import check_before_start

__all__ = ["check_before_start"]
