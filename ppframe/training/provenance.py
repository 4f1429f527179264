"""Where a run came from: the state of the source tree it was launched in."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ppframe.metrics import to_json
from ppframe.training.files import write_text

_TIMEOUT_S = 10.0


def write_git_state(run_dir: Path, launch_dir: Path) -> None:
    """Write `git.json` into the run directory; see `git_state`."""
    write_text(run_dir / "git.json", to_json(git_state(launch_dir), indent=2) + "\n")


def git_state(folder: Path) -> dict[str, Any]:
    """Commit, branch and changed files of the working tree around a folder.

    Returns:
        `folder`, `commit`, `branch` (None on a detached head), `dirty`, `changed`: paths that
        differ from the commit, and `reason`: why the others are None, where they are.
    """
    state: dict[str, Any] = dict.fromkeys(("commit", "branch", "dirty", "changed", "reason"))
    state = {"folder": str(folder), **state}
    try:
        state["commit"] = _git(folder, "rev-parse", "HEAD").strip()
        branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD").strip()
        state["branch"] = None if branch == "HEAD" else branch
        entries = _git(folder, "status", "--porcelain", "-z").split("\0")
        state["changed"] = [entry for entry in entries if entry]
        state["dirty"] = bool(state["changed"])
    except FileNotFoundError:
        state["reason"] = "git is not installed"
    except subprocess.CalledProcessError as error:
        state["reason"] = str(error.stderr).strip().partition("\n")[0] or f"git gave {error}"
    except (subprocess.TimeoutExpired, OSError) as error:
        state["reason"] = str(error)
    return state


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", "--no-optional-locks", "-C", str(folder), *arguments),
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout
