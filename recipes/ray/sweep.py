"""Runs experiments of the lab on a Ray cluster: the cells that take longest first, each worker as it gets free.

    python recipes/ray/sweep.py --out results announce-tab-5.1 announce-k

Every node needs the command. Results are byte for byte those of one machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray

SHORT = 20.0
"""Seconds: cells that take less travel together. A call takes a second of its own, in which the command finds out what
its build does."""


def bundles(cells: list[dict]) -> list[list[dict]]:
    """The longest alone and first; short ones in bundles."""
    out: list[list[dict]] = []
    for cell in sorted(cells, key=lambda cell: -cell["cost"]):
        if out and cell["cost"] < SHORT and sum(one["cost"] for one in out[-1]) + cell["cost"] <= SHORT:
            out[-1].append(cell)
        else:
            out.append([cell])
    return out


# A worker whose node is gone is replaced, and what it was at is run again.
@ray.remote(num_cpus=1, max_retries=-1)
def run(command: str, flags: list[str], ids: list[str]) -> tuple[dict[str, bytes], float]:
    """Files of results, and how long they took."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        cells = [word for one in ids for word in ("--cell", one)]
        words = [command, "lab", "run", *flags, "--threads", "1", "--out", out, *cells]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        files = {path.name: path.read_bytes() for path in Path(out).iterdir()}
    return files, time.monotonic() - begun


def sweep(command: str, ids: list[str], out: Path, flags: list[str], finished=lambda done: None) -> dict[str, float]:
    """Runs all cells of these experiments into ``out``; says how long that took, and the cells themselves."""
    listed = subprocess.run([command, "lab", "cells", "--json", *flags, *ids], capture_output=True, text=True)
    if listed.returncode != 0:
        raise SystemExit(listed.stderr)
    begun = time.monotonic()
    # Ray starts what was asked for first, first.
    left = [run.remote(command, flags, [cell["id"] for cell in one]) for one in bundles(json.loads(listed.stdout))]
    busy, done = 0.0, 0
    with tempfile.TemporaryDirectory() as parts:
        while left:
            ready, left = ray.wait(left)
            files, took = ray.get(ready[0])
            part = Path(parts) / str(done)
            part.mkdir()
            for name, content in files.items():
                (part / name).write_bytes(content)
            busy, done = busy + took, done + 1
            finished(done)
        took = time.monotonic() - begun
        folders = sorted(Path(parts).iterdir())
        subprocess.run([command, "lab", "merge", "--out", out, *folders], check=True, capture_output=True)
    return {"seconds": took, "busy": busy, "tasks": done}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="experiments, as `bellwether lab list` names them")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--quick", action="store_true", help="as `lab run --quick`")
    parser.add_argument("--out", type=Path, required=True, help="where to put the results")
    parser.add_argument("--command", default="bellwether", help="the command, where it is on every node")
    parser.add_argument("--address", help="of the cluster; without one, this machine")
    args = parser.parse_args()
    if args.all == bool(args.ids):
        parser.error("name experiments, or --all")
    ray.init(address=args.address, log_to_driver=False)
    flags = ["--quick"] if args.quick else []
    ids = ["--all"] if args.all else args.ids
    report = sweep(args.command, ids, args.out, flags)
    print(json.dumps(report), file=sys.stderr)


if __name__ == "__main__":
    main()
