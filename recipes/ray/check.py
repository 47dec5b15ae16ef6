"""Tries the sweep on three nodes on this machine, one of which is removed in mid-sweep, and compares the results.

    python recipes/ray/check.py path/to/bellwether ID...
"""

from __future__ import annotations

import filecmp
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, str(Path(__file__).parent))
from sweep import sweep  # noqa: E402


def same(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir()), "the same files"
    _, differ, odd = filecmp.cmpfiles(one, other, names, shallow=False)
    assert not differ and not odd, f"differ: {differ + odd}"
    assert len(names) >= 2, "a manifest and results"


@ray.remote(num_cpus=1)
def idle() -> None:
    time.sleep(0.5)


def main() -> None:
    command, *ids = sys.argv[1:]
    command = str(Path(command).resolve())
    flags = ["--quick"]
    with tempfile.TemporaryDirectory() as folder:
        alone, spread, broken = (Path(folder) / name for name in ("alone", "spread", "broken"))
        begun = time.monotonic()
        words = [command, "lab", "run", *flags, "--threads", "2", "--out", alone, *ids]
        # Verdicts are not what this is about.
        subprocess.run(words, capture_output=True)
        print(f"one process, two threads: {time.monotonic() - begun:.1f} s")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
            ray.init(address=cluster.address, log_to_driver=False)
            cluster.wait_for_nodes()
            # The first task of a cluster starts its workers; that is the cluster's time, not the sweep's.
            ray.get([idle.remote() for _ in range(4)])
            report = sweep(command, ids, spread, flags)
            over = 2 * report["seconds"] / report["busy"] - 1
            print(f"ray, two workers: {json.dumps(report)}; over the cells' own time: {100 * over:.1f}%")
            same(alone, spread)
            print("two nodes: byte for byte the same")

            gone = threading.Event()

            def remove(done: int) -> None:
                if done == 2 and not gone.is_set():
                    # By force: the node has no time to hand over what it is at.
                    cluster.remove_node(workers[0], allow_graceful=False)
                    gone.set()

            report = sweep(command, ids, broken, flags, remove)
            assert gone.is_set() and report["tasks"] > 3, "removed while there was work left"
            alive = [node for node in ray.nodes() if node["Alive"]]
            assert len(alive) == 2, "the head and one worker"
            same(alone, broken)
            print(f"one of two nodes removed after two of {report['tasks']} tasks: byte for byte the same")
        finally:
            ray.shutdown()
            cluster.shutdown()


if __name__ == "__main__":
    main()
