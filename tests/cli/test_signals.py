"""Signals before anything runs, in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# `hydra` stands for whatever takes long to import; it tells that it is being imported.
SLOW_IMPORT = """
import sys, types
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "hydra":
            print("importing", flush=True)
            try:
                while True: pass
            except BaseException as error:
                raise ImportError("taken for something else") from error
sys.meta_path.insert(0, Slow())
from ppframe.cli import main
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_an_import_ends_the_process_with_one_line(number: int, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err == "Stopped by a signal.\n"
