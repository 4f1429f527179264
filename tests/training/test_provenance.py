"""The source tree's state is noted, and a missing one is no error."""

from __future__ import annotations

import json
import subprocess

import pytest

from ppframe.training.provenance import git_state, write_git_state


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "no_config"))
    (folder / "a file").write_text("1")
    for command in (
        ["init", "-q", "-b", "trunk"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", "-C", folder, *command], check=True, capture_output=True)
    return folder


def test_a_clean_tree_has_its_commit_and_branch(repository):
    head = subprocess.check_output(["git", "-C", repository, "rev-parse", "HEAD"], text=True)
    state = git_state(repository)
    assert state["commit"] == head.strip()
    assert (state["branch"], state["dirty"], state["changed"]) == ("trunk", False, [])
    assert state["reason"] is None


def test_changed_and_new_files_are_listed(repository):
    (repository / "a file").write_text("2")
    (repository / "new").write_text("")
    state = git_state(repository)
    assert state["dirty"] is True
    assert sorted(state["changed"]) == [" M a file", "?? new"]


def test_a_detached_head_has_no_branch(repository):
    subprocess.run(["git", "-C", repository, "checkout", "-q", "--detach"], check=True)
    assert git_state(repository)["branch"] is None


def test_outside_a_repository_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    write_git_state(tmp_path, tmp_path)
    state = json.loads((tmp_path / "git.json").read_text())
    assert state["commit"] is None
    assert "not a git repository" in state["reason"]


def test_without_git_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path)["reason"] == "git is not installed"
