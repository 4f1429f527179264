"""Layouts that every model is tried under."""

import pytest

LAYOUTS = [
    {"schedule": "gpipe", "ranks": 4},
    {"schedule": "1f1b", "ranks": 4},
    {"schedule": "dora-dfs", "ranks": 2},
    {"schedule": "looped-bfs", "ranks": 1},
    {"schedule": "zbv", "ranks": 2},
    {"schedule": "zb-h2", "ranks": 4, "recompute": "full"},
]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout["schedule"])
