"""Bellwether's simulator: leader election and membership on networks that will not hold still.

>>> import bellwether
>>> scenario = bellwether.Scenario.load("scenarios/announce-failover.toml")
>>> scenario.run(seed=1).trace_hash == scenario.run(seed=1).trace_hash
True
>>> results = bellwether.run_many(scenario, seeds=100, overrides=bellwether.grid({"network.nodes": [5, 10]}))
>>> results.summary("leadership_delay")  # doctest: +SKIP
"""

from bellwether._core import __version__
from bellwether._errors import PlacementError, ScenarioError
from bellwether._plot import plot, plot_agreement, plot_leaders
from bellwether._scenario import Outcome, Overrides, Scenario, Trace, Violation
from bellwether._sweep import Results, Stream, Summary, grid, run_many, stream
from bellwether._table import Table

__all__ = [
    "Outcome",
    "Overrides",
    "PlacementError",
    "Results",
    "Scenario",
    "ScenarioError",
    "Stream",
    "Summary",
    "Table",
    "Trace",
    "Violation",
    "__version__",
    "grid",
    "plot",
    "plot_agreement",
    "plot_leaders",
    "run_many",
    "stream",
]
