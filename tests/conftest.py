"""Shared by all tests: a quiet TensorFlow, a headless matplotlib, the same drawn examples each time."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Before TensorFlow is imported anywhere: no log lines about CPU features, no search for a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("MPLBACKEND", "Agg")

# A change is judged by the same examples as the state before it; `--hypothesis-profile explore` looks for new ones.
# How long an example takes depends on the machine, and is never a test.
_untimed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **_untimed)
settings.register_profile("explore", derandomize=False, **_untimed)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def time_enough() -> None:
    from tests.patience import give_time  # imports TensorFlow, which the environment above must precede

    give_time()
