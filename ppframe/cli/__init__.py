"""The command line: `python launch.py`, and the `ppframe` command of an installed wheel.

::

    main ── command ─┬─ help        what --help prints
                     ├─ overrides   the command line vetted, before Hydra stops at its first fault
                     ├─ folders     where conf is, and the run directory that nobody else gets
                     └─ Hydra ── job ── build.run
                          └── sweep    the comparison table at the end of -m

Hydra is imported here and nowhere else; torch only when a job is about to start.
"""

from ppframe.cli.command import main

__all__ = ["main"]
