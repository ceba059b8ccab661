"""Shared by all tests: a quiet TensorFlow, a headless matplotlib."""

from __future__ import annotations

import os

# Before TensorFlow is imported anywhere: no log lines about CPU features, no search for a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("MPLBACKEND", "Agg")
