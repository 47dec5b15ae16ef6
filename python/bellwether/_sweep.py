"""Many runs."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellwether import _core
from bellwether._scenario import Overrides, Scenario, Violation, sets_of
from bellwether._table import Table

Progress = bool | Callable[[int, int], None]
"""``True`` draws a bar (tqdm's if it is there); a function is told how many runs are done, of how many."""


@dataclass(frozen=True)
class Summary:
    """A metric over runs, as the command sums it up."""

    count: int
    mean: float
    sd: float
    se: float
    p50: float
    p95: float
    p99: float


class Results(Table):
    """A row for each run: the overrides that tell cells apart, ``seed``, ``trace_hash``, every metric."""

    def __init__(self, core: _core.Table, keys: Sequence[str], violations: Sequence[Violation]) -> None:
        super().__init__(core)
        self.keys = list(keys)
        """The columns that tell cells apart."""
        self.violations = list(violations)
        """Invariants that did not hold."""

    @property
    def metrics(self) -> list[str]:
        return [name for name in self.names if name not in (*self.keys, "seed", "trace_hash")]

    def summary(self, metric: str, by: Sequence[str] | None = None) -> dict[tuple[Any, ...], Summary | None]:
        """The metric over the runs of each cell; ``None`` where no run had a value.

        Cells are told apart by all keys, or by those of ``by``; without any there is one, ``()``.
        """
        keys = self.keys if by is None else list(by)
        values: dict[tuple[Any, ...], list[float]] = {}
        columns = [self[key] for key in keys]
        for place, value in enumerate(self[metric]):
            of = values.setdefault(tuple(column[place] for column in columns), [])
            if value is not None:
                of.append(value)
        return {cell: _summary(of) for cell, of in values.items()}

    def plot(self, metric: str, x: str | None = None, **options: Any) -> Any:
        """Draws a metric: see ``bellwether.plot``."""
        from bellwether._plot import plot

        return plot(self, metric, x, **options)


def _summary(values: list[float]) -> Summary | None:
    if not values:
        return None
    values.sort()
    count = len(values)
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    sd = math.sqrt(squares / (count - 1)) if count > 1 else 0.0
    p50, p95, p99 = (values[max(math.ceil(share * count), 1) - 1] for share in (0.5, 0.95, 0.99))
    return Summary(count, mean, sd, sd / math.sqrt(count), p50, p95, p99)


def grid(fields: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination: ``grid({"network.nodes": [5, 9], "network.loss.rate": [0, 0.1]})`` are four cells."""
    return [dict(zip(fields, values, strict=True)) for values in itertools.product(*fields.values())]


def run_many(
    scenario: Scenario | Mapping[str, Scenario],
    seeds: int | Iterable[int] = 100,
    overrides: Overrides | Sequence[Overrides] | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Results:
    """Runs a scenario with all these seeds, in parallel and without the interpreter's lock.

    ``seeds`` are numbers, or how many from 1 on. ``overrides`` are fields to change, or a list of such: every one is a
    cell, and its fields are columns. A dictionary of scenarios is run with the same seeds and overrides, and the
    column ``scenario`` tells them apart. The result depends neither on the threads nor on their number.

    Raises ``ScenarioError`` before anything is run, and ``PlacementError``.
    """
    sweep, cells, keys = _begun(scenario, seeds, overrides, threads, rows=1_024)
    tables: list[_core.Table] = []
    violations: list[Violation] = []
    with _Bar(progress, sweep.total) as bar:
        for table in _tables(sweep, bar):
            tables.append(table)
            violations += _violations(sweep, cells)
    return Results(_core.Table.concat(tables), keys, violations)


def stream(
    scenario: Scenario | Mapping[str, Scenario],
    seeds: int | Iterable[int] = 100,
    overrides: Overrides | Sequence[Overrides] | None = None,
    threads: int | None = None,
    progress: Progress = False,
    *,
    rows: int = 1_024,
) -> Stream:
    """As ``run_many``, but hands out the results ``rows`` at a time, and keeps none: for millions of runs."""
    sweep, cells, keys = _begun(scenario, seeds, overrides, threads, rows)
    return Stream(sweep, cells, keys, progress)


class Stream:
    """Results as they come, in the order of cells and seeds. Read once; runs wait for the reader.

    ``pyarrow.RecordBatchReader.from_stream(this)`` reads it too.
    """

    def __init__(
        self, sweep: _core.Sweep, cells: list[Mapping[str, Any]], keys: list[str], progress: Progress
    ) -> None:
        self._sweep, self._cells, self._keys, self._progress = sweep, cells, keys, progress

    def __iter__(self) -> Iterator[Results]:
        with _Bar(self._progress, self._sweep.total) as bar:
            for table in _tables(self._sweep, bar):
                yield Results(table, self._keys, _violations(self._sweep, self._cells))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._sweep.__arrow_c_stream__(requested_schema)


def _begun(
    scenario: Scenario | Mapping[str, Scenario],
    seeds: int | Iterable[int],
    overrides: Overrides | Sequence[Overrides] | None,
    threads: int | None,
    rows: int,
) -> tuple[_core.Sweep, list[Mapping[str, Any]], list[str]]:
    several = overrides is not None and not isinstance(overrides, Mapping)
    changes: list[Overrides] = list(overrides) if several else [overrides or {}]  # type: ignore[arg-type,list-item]
    if not changes:
        raise ValueError("overrides is an empty list: there is nothing to run")
    # What all cells share tells none apart.
    keys = list(dict.fromkeys(path for one in changes for path in one)) if several else []
    named = scenario if isinstance(scenario, Mapping) else None
    worlds = named if named is not None else {"": scenario}
    scenarios: list[_core.Scenario] = []
    cells: list[Mapping[str, Any]] = []
    for name, world in worlds.items():
        for one in changes:
            scenarios.append(world._core.with_sets(sets_of(one)) if one else world._core)  # type: ignore[union-attr]
            own: dict[str, Any] = {"scenario": name} if named is not None else {}
            cells.append({**own, **{key: one.get(key) for key in keys}})
    if named is not None:
        keys.insert(0, "scenario")
    labels = [(key, _label([cell[key] for cell in cells])) for key in keys]
    sweep = _core.Sweep(scenarios, labels, _seeds(seeds), threads, max(rows, 1))
    return sweep, cells, keys


def _label(values: list[Any]) -> list[int] | list[float] | list[str]:
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return values
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    return ["" if value is None else sets_of({"": value})[0].removeprefix("=") for value in values]


def _seeds(seeds: int | Iterable[int]) -> tuple[int, int, int, list[int] | None]:
    if isinstance(seeds, int):
        seeds = range(1, seeds + 1)
    if isinstance(seeds, range):
        if not seeds or min(seeds[0], seeds[-1]) < 0:
            raise ValueError("seeds are numbers from 0 on, and at least one")
        return seeds.start, seeds.step, len(seeds), None
    some = list(seeds)
    if not some:
        raise ValueError("seeds are numbers from 0 on, and at least one")
    return 0, 0, len(some), some


def _tables(sweep: _core.Sweep, bar: _Bar) -> Iterator[_core.Table]:
    while True:
        # Now and then back to Python: for the bar, and for Ctrl-C.
        there, table = sweep.next(0.1)
        bar.at(sweep.finished)
        if table is not None:
            yield table
        elif there:
            return


def _violations(sweep: _core.Sweep, cells: list[Mapping[str, Any]]) -> list[Violation]:
    return [
        Violation(invariant, at, detail, seed, cells[cell])
        for cell, seed, invariant, at, detail in sweep.take_violations()
    ]


class _Bar:
    def __init__(self, progress: Progress, total: int) -> None:
        self._total, self._shown, self._tell = total, 0, None if isinstance(progress, bool) else progress
        self._tqdm: Any = None
        self._plain = progress is True
        self._since = time.monotonic()
        if progress is True:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._tqdm, self._plain = tqdm(total=total, unit="run"), False

    def __enter__(self) -> _Bar:
        return self

    def at(self, done: int) -> None:
        if done == self._shown:
            return
        if self._tell is not None:
            self._tell(done, self._total)
        if self._tqdm is not None:
            self._tqdm.update(done - self._shown)
        self._shown = done
        if self._plain:
            gone = time.monotonic() - self._since
            print(f"\r{done}/{self._total} runs, {gone:.0f} s", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        if self._plain:
            print(file=sys.stderr)
