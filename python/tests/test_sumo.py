"""Cars of SUMO move in a scenario as they moved in SUMO: `python/check --sumo` installs it."""

import json
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import bellwether
import pytest

sumo = pytest.importorskip("sumo", reason="pip install eclipse-sumo")

WORLD = """
name = "cars"
duration = "100s"
[network]
nodes = {nodes}
placement = {{ kind = "field", side = 1000.0, range = 150.0 }}
mobility = {{ kind = "trace", file = "cars.tcl" }}
delay = {{ kind = "fixed", value = "5ms" }}
routing = "none"
[membership]
kind = "ping"
period = "1s"
timeout = "500ms"
"""


def test_cars_are_where_sumo_says(tmp_path: Path, command: str):
    home = Path(sumo.SUMO_HOME)

    def call(*words: object) -> None:
        subprocess.run([str(word) for word in words], cwd=tmp_path, check=True, capture_output=True, timeout=300)

    call(home / "bin/netgenerate", "--grid", "--grid.number", 4, "--grid.length", 200, "-o", "net.xml", "--seed", 1)
    trips = home / "tools/randomTrips.py"
    call(sys.executable, trips, "-n", "net.xml", "-e", 20, "-p", 2, "-o", "trips.xml", "--seed", 1)
    call(home / "bin/sumo", "-n", "net.xml", "-r", "trips.xml", "--fcd-output", "fcd.xml", "--end", 100, "--seed", 1)
    exporter = home / "tools/traceExporter.py"
    call(sys.executable, exporter, "--fcd-input", "fcd.xml", "--ns2mobility-output", "cars.tcl")

    # The exporter numbers cars as they come.
    seen: dict[str, list[tuple[float, float, float]]] = {}
    for step in xml.parse(tmp_path / "fcd.xml").getroot():
        for car in step:
            place = (float(step.get("time")), float(car.get("x")), float(car.get("y")))
            seen.setdefault(car.get("id"), []).append(place)
    assert len(seen) >= 8
    world = tmp_path / "cars.toml"
    world.write_text(WORLD.format(nodes=len(seen)))
    call(command, "sim", world, "--movement", "moved", "--links", "links")
    lines = (tmp_path / "moved").read_text().splitlines()
    assert len(lines) == len(seen)
    compared = 0
    for line, places in zip(lines, seen.values(), strict=True):
        numbers = [float(word) for word in line.split()]
        points = list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
        for at, x, y in places:
            before = [point for point in points if point[0] <= at][-1]
            after = next((point for point in points if point[0] > at), before)
            part = (at - before[0]) / (after[0] - before[0]) if after != before else 0.0
            here = [b + part * (a - b) for b, a in zip(before[1:], after[1:], strict=True)]
            # ns-2's form says whither and how fast, not when: a car is a second of driving behind at most.
            assert abs(here[0] - x) <= 20 and abs(here[1] - y) <= 20, (at, here, x, y)
            compared += 1
    assert compared > 200
    changes = (tmp_path / "links").read_text().splitlines()
    assert len({line.split(",")[0] for line in changes}) > 5, "links come and go as cars meet"
    outcome = bellwether.Scenario.load(world).run(1)
    said = subprocess.run([command, "sim", world, "--json"], capture_output=True).stdout
    assert json.loads(said)["trace_hashes"] == [outcome.trace_hash]
