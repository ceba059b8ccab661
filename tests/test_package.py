"""What the package is from outside: its names, its cost at import, its command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

import pytest

import tfqueue
from tfqueue import errors

HEAVY = ("tensorflow", "matplotlib", "cv2", "numpy", "keras")


def test_public_names_are_pinned() -> None:
    public = {
        "LockstepHook",
        "QueuePipeline",
        "Report",
        "assert_equivalent",
        "compare",
        "errors",
        "explain",
        "queue_runners",
        "record_golden",
        "records",
        "replay_shuffle",
        "rewire",
        "to_dataset",
        "trace",
        "views",
    }
    assert set(tfqueue.__all__) == public


@pytest.mark.parametrize("name", tfqueue.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(tfqueue, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'queue_runner'"):
        _ = tfqueue.queue_runner


def test_version_is_that_of_the_distribution() -> None:
    assert tfqueue.__version__ == metadata.version("tfqueue")


def test_import_and_help_load_nothing_heavy() -> None:
    # One process for both: what a fresh interpreter has loaded after `import tfqueue`, and after `tfqueue --help`.
    script = f"""
import json, sys
import tfqueue, tfqueue.cli
imported = [name for name in {HEAVY!r} if name in sys.modules]
try:
    tfqueue.cli.main(["--help"])
except SystemExit:
    pass
helped = [name for name in {HEAVY!r} if name in sys.modules]
print("\\n" + json.dumps([imported, helped]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported, helped = json.loads(done.stdout.splitlines()[-1])
    assert imported == []
    assert helped == []
    assert "usage: tfqueue" in done.stdout


def test_every_error_has_one_base_an_exit_code_and_words() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    for kind in kinds:
        assert kind.__doc__, kind
        if not issubclass(kind, Warning):
            assert issubclass(kind, errors.TFQueueError), kind
            assert kind.exit_code in (1, 2), kind
            assert f"── {kind.__name__}" in errors.__doc__ or kind is errors.TFQueueError, kind
