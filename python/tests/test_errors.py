"""Whatever is wrong is said as the command says it, with its facts."""

import json
import pickle
import subprocess

import bellwether
import pytest
from conftest import SCENARIOS


def wrong(*arguments, **named) -> bellwether.ScenarioError:
    with pytest.raises(bellwether.ScenarioError) as caught:
        bellwether.Scenario.load(*arguments, **named)
    return caught.value


def test_a_wrong_file_has_place_value_and_what_is_allowed(tmp_path, command: str):
    path = tmp_path / "mine.toml"
    text = (SCENARIOS / "announce-failover.toml").read_text()
    path.write_text(text.replace('variant = "le-s"', 'variant = "le-z"'))
    error = wrong(path)
    said = subprocess.run([command, "sim", path], capture_output=True, text=True).stderr
    assert said == f"error: {error}\n"
    facts = json.loads(subprocess.run([command, "sim", path, "--json"], capture_output=True).stderr)["error"]
    assert facts["place"] == {"file": error.file, "line": error.line, "column": error.column}
    assert (facts["field"], facts["found"], facts["problem"], facts["allowed"]) == (
        error.field,
        error.value,
        error.problem,
        error.allowed,
    )
    assert error.place == f"{path}:{error.line}:{error.column}"
    assert error.value == '"le-z"' and "le-s" in error.allowed


def test_a_wrong_override_is_named_as_the_flag(command: str):
    path = SCENARIOS / "announce-failover.toml"
    error = wrong(path, {"network.nodes": 0})
    said = subprocess.run([command, "sim", path, "--set", "network.nodes=0"], capture_output=True, text=True).stderr
    assert said == f"error: {error}\n"
    assert (error.place, error.value, error.file) == ("--set network.nodes=0", "0", None)


def test_a_missing_file_is_one_too(command: str):
    error = wrong("nowhere.toml")
    said = subprocess.run([command, "sim", "nowhere.toml"], capture_output=True, text=True).stderr
    assert said == f"error: {error}\n" and error.file == "nowhere.toml"


def test_a_wrong_cell_is_found_before_anything_is_run(failover):
    with pytest.raises(bellwether.ScenarioError) as caught:
        bellwether.run_many(failover, 10**12, [{"network.nodes": 5}, {"network.nodes": "five"}])
    assert caught.value.field == "network.nodes"


def test_it_is_a_value_error_and_can_be_pickled(failover):
    error = wrong(SCENARIOS / "announce-failover.toml", {"network.nodes": 0})
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(error, ValueError)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_a_world_that_cannot_be_drawn_is_another_error(failover):
    apart = failover.override({"network.placement": {"kind": "random", "side": 1000.0, "range": 1.0}})
    for attempt in (lambda: apart.run(1), lambda: bellwether.run_many(apart, 5), lambda: apart.trace(1).table()):
        with pytest.raises(bellwether.PlacementError):
            attempt()


def test_an_override_of_another_kind_is_refused(failover):
    with pytest.raises(TypeError):
        failover.override({"network.nodes": object()})
