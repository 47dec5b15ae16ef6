"""One run is the command's run; many runs are the same runs."""

import json
import subprocess
import threading
import time
from pathlib import Path

import bellwether
import pytest
from conftest import ROOT, SCENARIOS

ALL = sorted(SCENARIOS.glob("*.toml"))
WORLDS = sorted((SCENARIOS / "worlds").glob("*.toml"))


def test_there_are_scenarios_to_compare():
    assert len(ALL) >= 21 and WORLDS


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_run_has_the_trace_and_the_values_of_the_command(path: Path, command: str):
    said = json.loads(subprocess.run([command, "sim", path, "--seed", "3", "--json"], capture_output=True).stdout)
    scenario = bellwether.Scenario.load(path)
    outcome = scenario.run(seed=3)
    assert outcome.trace_hash == said["trace_hashes"][0]
    assert scenario.digest == said["digest"]
    means = {name: metric.get("mean") for name, metric in said["metrics"].items()}
    assert outcome.metrics == means
    assert len(outcome.violations) == len(said["violations"])


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_settings_of_an_agent_run_as_the_command_runs_them(path: Path, command: str):
    settings = ROOT / "packaging/examples/three-nodes.toml"
    said = subprocess.run([command, "sim", path, "--settings", settings, "--json"], capture_output=True).stdout
    scenario = bellwether.Scenario.load(path, settings=settings)
    assert scenario.run(1).trace_hash == json.loads(said)["trace_hashes"][0]


def test_the_command_that_a_scenario_names_runs_the_same(failover, command: str):
    changed = failover.override({"network.nodes": 7, "network.loss": {"kind": "independent", "rate": 0.1}})
    words = changed.command(seed=5).split(" ", 1)[1]
    said = subprocess.run(f"{command} {words} --json", shell=True, capture_output=True).stdout
    assert json.loads(said)["trace_hashes"] == [changed.run(5).trace_hash]
    assert changed.nodes == 7 and changed.digest != failover.digest


def test_a_text_is_a_scenario_as_its_file_is(failover):
    text = (SCENARIOS / "announce-failover.toml").read_text()
    assert bellwether.Scenario.from_toml(text).digest == failover.digest


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_runs_are_single_runs_in_the_order_of_seeds(failover, threads: int):
    results = bellwether.run_many(failover, seeds=range(3, 15), threads=threads)
    assert results["seed"] == list(range(3, 15))
    for seed, trace, messages in zip(results["seed"], results["trace_hash"], results["messages"], strict=True):
        one = failover.run(seed)
        assert (trace, messages) == (one.trace_hash, one["messages"])


def test_seeds_are_a_number_a_range_or_any_numbers(failover):
    assert bellwether.run_many(failover, 3)["seed"] == [1, 2, 3]
    assert bellwether.run_many(failover, [7, 2, 2**64 - 1])["seed"] == [7, 2, 2**64 - 1]
    assert bellwether.run_many(failover, range(9, 0, -4))["seed"] == [9, 5, 1]
    for nonsense in (0, [], range(-1, 2), [-1]):
        with pytest.raises((ValueError, OverflowError)):
            bellwether.run_many(failover, nonsense)


def test_cells_have_columns_and_the_same_seeds(failover):
    cells = bellwether.grid({"network.nodes": [4, 6], "network.loss.rate": [0, 0.5]})
    results = bellwether.run_many(failover.override({"network.loss.kind": "independent"}), 5, cells)
    assert results.keys == ["network.nodes", "network.loss.rate"]
    assert results["network.nodes"] == [4] * 10 + [6] * 10
    assert results["network.loss.rate"] == ([0.0] * 5 + [0.5] * 5) * 2
    assert results["seed"] == [1, 2, 3, 4, 5] * 4
    summary = results.summary("messages", by=["network.nodes"])
    assert set(summary) == {(4,), (6,)} and summary[(6,)].count == 10


def test_protocols_are_compared_on_one_world(failover):
    world = bellwether.Scenario.load(SCENARIOS / "announce-delay.toml")
    other = world.override({"election.variant": "le-a"})
    results = bellwether.run_many({"suppressed": world, "at once": other}, 4)
    assert results["scenario"] == ["suppressed"] * 4 + ["at once"] * 4
    first = world.run(2).metrics["leadership_delay"]
    assert results["leadership_delay"][1] == first


def test_metrics_that_a_cell_does_not_have_are_missing_there(failover):
    ping = bellwether.Scenario.load(SCENARIOS / "ping-mesh.toml")
    results = bellwether.run_many({"elects": failover, "pings": ping}, 2)
    delays = results["leader_changes"]
    assert None not in delays[:2] and delays[2:] == [None, None]


def test_a_stream_hands_out_the_same_rows_and_runs_no_further_than_it_is_read(failover):
    whole = bellwether.run_many(failover, 50)
    chunks = list(bellwether.stream(failover, 50, rows=8))
    assert [len(chunk) for chunk in chunks] == [8] * 6 + [2]
    assert [trace for chunk in chunks for trace in chunk["trace_hash"]] == whole["trace_hash"]

    stream = bellwether.stream(failover, 100_000, rows=10, threads=2)
    assert len(next(iter(stream))) == 10
    time.sleep(1)
    done = stream._sweep.finished
    assert 10 <= done <= 10 + 2 * 10 + 2 + 2, "the threads wait for the reader"


def test_other_threads_run_meanwhile():
    scenario = bellwether.Scenario.load(SCENARIOS / "ping-mesh.toml")
    counted, over = 0, threading.Event()

    def work():
        scenario.run(1)
        bellwether.run_many(scenario, 2, threads=1)
        over.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not over.wait(0.001):
        counted += 1
    worker.join()
    assert counted >= 5, "the interpreter's lock was held"


def test_progress_is_told(failover, capsys):
    told = []
    bellwether.run_many(failover, 20, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (20, 20) and told == sorted(told)
    bellwether.run_many(failover, 5, progress=True)
    assert "5/5" in capsys.readouterr().err


HASTY = """
name = "a successor that does not wait"
duration = "30s"
[network]
nodes = 5
delay = { kind = "uniform", low = "1ms", high = "50ms" }
[membership]
kind = "ring"
[election]
kind = "leased"
waits = false
[[fault]]
at = "9s"
every = "1s"
kind = "cut"
from = "leader"
both = true
for = "700ms"
[[fault]]
at = "10s"
kind = "pause"
target = "leader"
for = "10s"
"""


def test_violations_are_told_with_their_seed_and_cell():
    scenario = bellwether.Scenario.from_toml(HASTY)
    cells = [{"network.nodes": 5}, {"network.nodes": 6}, {"election.waits": True}]
    results = bellwether.run_many(scenario, 20, cells)
    assert results.keys == ["network.nodes", "election.waits"]
    counts = results.summary("violations", by=["election.waits"])
    assert counts[("",)].mean > 0.1 and counts[("true",)].mean == 0
    assert len(results.violations) == sum(results["violations"])
    for one in results.violations[:1] + results.violations[-1:]:
        changed = {path: value for path, value in one.overrides.items() if value is not None}
        again = scenario.override(changed).run(one.seed).violations[0]
        assert (again.invariant, again.at, again.detail) == (one.invariant, one.at, one.detail)
