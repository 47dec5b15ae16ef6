"""Tables are Arrow's, and whole."""

import csv
import json
import subprocess
import sys

import bellwether
import pytest
from conftest import SCENARIOS

pyarrow = pytest.importorskip("pyarrow")


def test_results_are_arrow_and_pandas_with_units(failover):
    results = bellwether.run_many(failover, 30)
    table = results.to_arrow()
    assert table.num_rows == len(results) == 30
    assert table.schema.field("messages").type == pyarrow.float64()
    assert table.schema.field("leadership_delay").metadata == {b"unit": b"s"}
    frame = results.to_pandas()
    assert list(frame["seed"]) == results["seed"]
    assert list(frame.columns) == results.names


def test_without_pyarrow_pandas_and_lists_go_on(failover):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import bellwether\n"
        f"r = bellwether.run_many(bellwether.Scenario.load({str(SCENARIOS / 'announce-failover.toml')!r}), 4)\n"
        "print(r.to_pandas().shape[0], len(r['seed']))"
    )
    assert subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True).stdout == "4 4\n"


def test_a_stream_is_read_by_arrow_batch_by_batch(failover):
    stream = bellwether.stream(failover, 100, rows=16)
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    sizes = [batch.num_rows for batch in reader]
    assert sizes == [16] * 6 + [4]


def test_csv_is_what_the_command_writes_and_parquet_holds_the_same(failover, tmp_path, command: str):
    results = bellwether.run_many(failover, 12)
    results.to_csv(tmp_path / "ours.csv")
    path = SCENARIOS / "announce-failover.toml"
    flags = ["--runs", "12", "--csv", tmp_path / "theirs.csv"]
    subprocess.run([command, "sim", path, *flags], check=True, capture_output=True)
    with open(tmp_path / "ours.csv") as ours, open(tmp_path / "theirs.csv") as theirs:
        for a, b in zip(csv.reader(ours), csv.reader(theirs), strict=True):
            assert len(a) == len(b)
            same = [x == y or y == "trace" or float(x) == float(y) for x, y in zip(a, b, strict=True)]
            assert all(same), (a, b)
    results.to_parquet(tmp_path / "runs.parquet")
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(tmp_path / "runs.parquet").to_pydict() == results.columns()


def test_a_trace_is_the_commands_trace(failover, tmp_path, command: str):
    path = SCENARIOS / "announce-failover.toml"
    out = subprocess.run([command, "sim", path, "--replay", "4", "--json"], capture_output=True, text=True)
    *steps, last = map(json.loads, out.stdout.splitlines())
    trace = failover.trace(4, rows=100)
    assert trace.trace_hash is None
    table = trace.table()
    assert list(table.rows()) == steps
    assert trace.trace_hash == last["trace_hash"] == failover.run(4).trace_hash
    assert pyarrow.table(failover.trace(4)).num_rows == len(steps)


def test_leaders_are_who_names_whom(failover, command: str):
    path = SCENARIOS / "announce-failover.toml"
    flags = ["--replay", "4", "--leaders", "--json"]
    out = subprocess.run([command, "sim", path, *flags], capture_output=True, text=True).stdout
    theirs = [(line["us"], line["node"], line["leader"]) for line in map(json.loads, out.splitlines()) if line["up"]]
    ours = failover.leaders(4)
    named = {(row["us"], row["node"], row["leader"]) for row in ours.rows() if row["up"]}
    assert theirs and set(theirs) <= named


def test_memory_does_not_grow_with_the_number_of_runs():
    code = f"""
import resource, bellwether
scenario = bellwether.Scenario.load({str(SCENARIOS / "announce-delay.toml")!r})
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = []
for runs in (2_000, 20_000):
    for chunk in bellwether.stream(scenario, runs, rows=256):
        pass
    sizes.append(peak())
print(*sizes)
"""
    out = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True).stdout
    small, large = map(int, out.split())
    assert large - small < 8_192, f"{small} KiB after 2,000 runs, {large} KiB after 22,000"


def test_plots_are_drawn(failover):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    cells = bellwether.grid({"network.nodes": [4, 6, 8], "election.variant": ["le-s", "le-m"]})
    results = bellwether.run_many(failover, 10, cells)
    axes = results.plot("messages", x="network.nodes")
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {
        "election.variant = le-s",
        "election.variant = le-m",
    }
    assert bellwether.run_many(failover, 10).plot("messages").get_xlabel() == "messages"
    assert bellwether.plot_leaders(failover, 1).get_ylabel() == "node"
    assert bellwether.plot_agreement(failover.run(1), failover).get_xlabel() == "seconds"
    with pytest.raises(KeyError, match="network.nodes"):
        results.plot("messages", x="nodes")
