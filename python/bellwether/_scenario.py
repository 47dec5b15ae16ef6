"""Scenarios and their runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from bellwether import _core
from bellwether._table import Table

Overrides = Mapping[str, Any]
"""Fields and their values: ``{"network.nodes": 50, "network.loss.rate": 0.2, "membership": None}``.

A text is what stands behind ``--set PATH=``; ``None`` removes a table; lists and dictionaries are lists and tables.
"""


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        entries = (f"{json.dumps(str(key), ensure_ascii=False)} = {_toml(one)}" for key, one in value.items())
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if hasattr(value, "item"):  # a number of numpy's
        return _toml(value.item())
    raise TypeError(f"an override is a number, a text, a list or a table, not {type(value).__name__}")


def sets_of(overrides: Overrides | None) -> list[str]:
    """As the command line has them."""

    def text(value: object) -> str:
        if value is None:
            return "none"
        return value if isinstance(value, str) else _toml(value)

    return [f"{path}={text(value)}" for path, value in (overrides or {}).items()]


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    at: float
    """Seconds from the start of the run."""
    detail: str
    seed: int
    overrides: Mapping[str, Any] | None = None
    """Of the cell, where there were several."""


class Outcome:
    """What one run came to."""

    def __init__(self, core: _core.Outcome) -> None:
        self.seed: int = core.seed
        self.trace_hash: str = core.trace_hash
        """The digest of all that happened: what ``bellwether sim`` prints as ``trace``."""
        self.metrics: dict[str, float | None] = core.metrics
        """What was measured; ``None`` where there was nothing to measure."""
        self.units: dict[str, str] = core.units
        self.disagreements: list[tuple[float, float]] = core.disagreements
        """Spells, in seconds, in which not all nodes agreed."""
        self.violations: list[Violation] = [Violation(*facts, seed=self.seed) for facts in core.violations]

    def __getitem__(self, metric: str) -> float | None:
        return self.metrics[metric]

    def __repr__(self) -> str:
        return f"<Outcome of seed {self.seed}: trace {self.trace_hash}, {len(self.violations)} violations>"


class Trace:
    """The event log of one run, read once: batch by batch, or whole.

    The run goes on as it is read, so a log of gigabytes takes a few megabytes.
    """

    def __init__(self, core: _core.Trace) -> None:
        self._core = core

    def __iter__(self) -> Iterator[Table]:
        while (batch := self._core.next()) is not None:
            yield Table(batch)

    def table(self) -> Table:
        """All steps that were not read yet."""
        batches = [batch._core for batch in self]
        return Table(_core.Table.concat(batches) if batches else self._core.empty())

    @property
    def trace_hash(self) -> str | None:
        """The digest of the run; ``None`` before all was read."""
        return self._core.trace_hash

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)


class Scenario:
    """A world, what its nodes run, and what goes wrong. A run is a function of this and a seed."""

    def __init__(self, core: _core.Scenario) -> None:
        self._core = core

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        overrides: Overrides | None = None,
        *,
        settings: str | PathLike[str] | None = None,
    ) -> Scenario:
        """Reads a scenario file. With ``settings`` its nodes are agents with the settings in that file.

        Raises ``ScenarioError``.
        """
        agents = None if settings is None else fspath(settings)
        return cls(_core.Scenario.load(fspath(path), agents, sets_of(overrides)))

    @classmethod
    def from_toml(cls, text: str, overrides: Overrides | None = None, *, name: str = "scenario") -> Scenario:
        """Reads a scenario from a text. ``name`` stands in errors where a file's name would.

        Raises ``ScenarioError``.
        """
        return cls(_core.Scenario.from_toml(text, name, sets_of(overrides)))

    def override(self, overrides: Overrides | None = None, **more: Any) -> Scenario:
        """The same with fields changed, as ``--set`` does. Raises ``ScenarioError``."""
        return Scenario(self._core.with_sets(sets_of({**(overrides or {}), **more})))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def digest(self) -> str:
        """What it is known by: two scenarios of one digest have the same runs."""
        return self._core.digest

    @property
    def duration(self) -> float:
        """Simulated seconds of a run."""
        return self._core.duration

    @property
    def nodes(self) -> int:
        """How many nodes start."""
        return self._core.nodes

    def run(self, seed: int = 1) -> Outcome:
        """One run. Other Python threads go on meanwhile."""
        return Outcome(self._core.run(seed))

    def trace(self, seed: int = 1, *, rows: int = 16_384) -> Trace:
        """One run step by step: columns ``us``, ``node``, ``what``, ``detail``, so many rows a batch."""
        return Trace(self._core.trace(seed, rows))

    def leaders(self, seed: int = 1) -> Table:
        """Whom each node names from when on: columns ``us``, ``node``, ``up``, ``leader``, ``epoch``."""
        return Table(self._core.leaders(seed))

    def command(self, seed: int = 1) -> str:
        """The command that runs the same."""
        import shlex

        words = ["bellwether", "sim", self._core.file, "--seed", str(seed)]
        if self._core.settings is not None:
            words += ["--settings", self._core.settings]
        words += [word for one in self._core.sets for word in ("--set", one)]
        return shlex.join(words)

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}: {self.nodes} nodes, {self.duration:g} s, digest {self.digest}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a scenario stays in its process: send its file, or its text and overrides")
