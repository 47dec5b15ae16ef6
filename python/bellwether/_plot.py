"""Pictures, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellwether._scenario import Outcome, Scenario

if TYPE_CHECKING:
    from bellwether._sweep import Results


def plot(results: Results, metric: str, x: str | None = None, *, ax: Any = None, label: str | None = None) -> Any:
    """Draws a metric over ``x``, means with 95% intervals, a line for each combination of the other keys.

    Without ``x``, and without keys, the distribution over all runs. Returns matplotlib's axes.
    """
    import matplotlib.pyplot as plt

    axes = ax if ax is not None else plt.subplots()[1]
    keys = list(results.keys)
    if x is None and keys:
        x = keys[-1]
    if x is None:
        values = sorted(value for value in results[metric] if value is not None)
        shares = [(place + 1) / len(values) for place in range(len(values))]
        axes.step(values, shares, where="post", label=label or metric)
        axes.set(xlabel=metric, ylabel="share of runs", ylim=(0, 1.02))
        return axes
    if x not in keys:
        raise KeyError(f"no column {x!r} tells cells apart; there are {', '.join(keys) or 'none'}")
    others = [key for key in keys if key != x]
    lines: dict[tuple[Any, ...], list[tuple[Any, float, float]]] = {}
    for cell, summary in results.summary(metric, [*others, x]).items():
        if summary is not None:
            lines.setdefault(cell[:-1], []).append((cell[-1], summary.mean, 1.96 * summary.se))
    for cell, points in lines.items():
        places, means, errors = zip(*points, strict=True)
        name = ", ".join(f"{key} = {value}" for key, value in zip(others, cell, strict=True))
        axes.errorbar(places, means, yerr=errors, marker="o", capsize=3, label=label or name or metric)
    axes.set(xlabel=x, ylabel=metric)
    if len(lines) > 1:
        axes.legend()
    return axes


def plot_leaders(scenario: Scenario, seed: int = 1, *, ax: Any = None) -> Any:
    """Draws who names whom: a row for each node, a colour for each leader, white where it names nobody or is down."""
    import matplotlib.pyplot as plt

    axes = ax if ax is not None else plt.subplots(figsize=(9, 0.6 + 0.22 * scenario.nodes))[1]
    table, end = scenario.leaders(seed).columns(), scenario.duration
    spells: dict[int, list[tuple[float, Any]]] = {}
    for us, node, up, leader in zip(table["us"], table["node"], table["up"], table["leader"], strict=True):
        spells.setdefault(node, []).append((us / 1e6, leader if up else None))
    colours = plt.get_cmap("tab20")
    for node, changes in spells.items():
        for (start, leader), (stop, _) in zip(changes, [*changes[1:], (end, None)], strict=True):
            if leader is not None:
                axes.broken_barh([(start, stop - start)], (node - 0.4, 0.8), color=colours(leader % 20))
                if leader == node:
                    axes.plot([start, stop], [node, node], color="black", linewidth=1)
    axes.set(xlabel="seconds", ylabel="node", xlim=(0, end), title=f"{scenario.name}, seed {seed}")
    axes.invert_yaxis()
    return axes


def plot_agreement(outcome: Outcome, scenario: Scenario, *, ax: Any = None) -> Any:
    """Draws when all nodes agreed in a run, and when not."""
    import matplotlib.pyplot as plt

    axes = ax if ax is not None else plt.subplots(figsize=(9, 1.2))[1]
    axes.axvspan(0, scenario.duration, color="tab:green", alpha=0.3, label="agreed")
    for start, stop in outcome.disagreements:
        axes.axvspan(start, stop, color="tab:red", alpha=0.6)
    axes.set(xlabel="seconds", yticks=[], xlim=(0, scenario.duration))
    return axes
