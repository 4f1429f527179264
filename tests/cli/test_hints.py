"""What the files under conf say about a fault."""

from __future__ import annotations

from ppframe.cli.hints import with_hint
from ppframe.errors import Fault
from tests.launching import composer


def hinted(path: str, message: str, *overrides: str) -> str:
    return with_hint(Fault(path, message), composer().compose(overrides), composer()).message


def test_a_key_of_another_option_is_told_with_what_goes_together() -> None:
    message = hinted("model.in_features", "there is no `data.in_features`.", "model=mlp")
    assert message.startswith("there is no `data.in_features`. It is in data=synthetic. ")
    assert "conf/model/mlp.yaml says: " in message
    assert message.endswith("goes with data=synthetic loss=mse.")


def test_all_options_that_have_the_key_are_told() -> None:
    message = hinted("model.seq_len", "there is no `data.seq_len`.", "data=synthetic")
    assert "It is in data=pylib and in data=text. conf/data/synthetic.yaml says: " in message


def test_any_other_fault_stays_as_it_is() -> None:
    for message in ("must be a number.", "there is no `nothing.here`.", "there is no `steps`."):
        assert hinted("seed", message) == message
