"""`metrics.jsonl`: one JSON object a line, on disk as soon as it is logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO, final

from ppframe.metrics.base import RunInfo, Sink
from ppframe.metrics.plain import to_json

FILE_NAME = "metrics.jsonl"


@final
class JsonlSink(Sink):
    """Writes the numbers of each step to `metrics.jsonl` in the run directory.

    Each line is flushed at once, so that a killed run loses none. Texts are not kept.
    """

    def __init__(self) -> None:
        self._file: TextIO | None = None

    def start(self, run: RunInfo) -> None:
        """Open the file, empty."""
        self._file = (run.run_dir / FILE_NAME).open("w", encoding="utf-8", buffering=1)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Write one line.

        Raises:
            OSError: there is no room; names the file.
        """
        if self._file is None:
            return
        try:
            self._file.write(to_json({"step": step, **metrics}) + "\n")
        except OSError as error:
            error.filename = self._file.name
            raise

    def text(self, name: str, text: str) -> None:
        """Nothing: the file holds numbers only."""

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Close the file."""
        del summary, exit_code  # the file holds steps only
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
