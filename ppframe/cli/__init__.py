"""The command line: `python launch.py`, and the `ppframe` command of an installed wheel.

::

    main ─┬─ signals     Ctrl-C and SIGTERM while nothing runs yet
          └─ command ─┬─ help        what --help prints
                      ├─ overrides   the command line vetted, before Hydra stops at its first fault
                      ├─ folders     where conf is, and the run directory that nobody else gets
                      └─ Hydra ── job ── build.run
                           └── sweep    the comparison table at the end of -m

Hydra is imported here and nowhere else; torch only when a job is about to start.
"""

from ppframe.cli.signals import stop_at_once

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process; exits with 0, 1 for faults, 130 or 143 for signals."""
    stop_at_once()  # before anything is imported that takes its time
    from ppframe.cli.command import run_command

    run_command()
