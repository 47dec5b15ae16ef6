"""Checks the manifests against Kubernetes' own schemas, and runs what their containers run, here.

    pip install kubernetes-validate pyyaml
    python recipes/kubernetes/check.py path/to/bellwether ID...
"""

from __future__ import annotations

import copy
import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import kubernetes_validate
import yaml

HERE = Path(__file__).parent


def manifest(name: str) -> dict:
    return yaml.safe_load((HERE / name).read_text())


def container(name: str) -> dict:
    return manifest(name)["spec"]["template"]["spec"]["containers"][0]


def main() -> None:
    command, *ids = sys.argv[1:]
    command = str(Path(command).resolve())
    version = "1.31"
    for name in ("job.yaml", "merge.yaml"):
        kubernetes_validate.validate(manifest(name), version, strict=True)
    broken = copy.deepcopy(manifest("job.yaml"))
    broken["spec"]["completionsMode"] = broken["spec"].pop("completionMode")
    try:
        kubernetes_validate.validate(broken, version, strict=True)
    except kubernetes_validate.ValidationError:
        print(f"manifests are valid for Kubernetes {version}, and a key mistyped in one is not")
    else:
        raise AssertionError("a mistyped key was taken")

    workers = manifest("job.yaml")["spec"]["completions"]
    with tempfile.TemporaryDirectory() as folder:
        cells, results, alone, bin = (Path(folder) / name for name in ("cells", "results", "alone", "bin"))
        bin.mkdir()
        (bin / "bellwether").symlink_to(command)
        words = [command, "lab", "cells", "--quick", "--json", *ids]
        listed = subprocess.run(words, capture_output=True, check=True)
        subprocess.run([HERE.parent / "share", str(workers), cells], input=listed.stdout, check=True)
        dealt = [line for share in cells.iterdir() for line in share.read_text().splitlines()]
        assert len(dealt) == len(set(dealt)) > workers, "every cell once"
        env = {"PATH": f"{bin}:{os.environ['PATH']}", "CELLS": str(cells), "RESULTS": str(results)}
        for index in range(workers):
            # The same words, but small experiments.
            words = [*container("job.yaml")["command"], "--quick"]
            subprocess.run(words, env={**env, "JOB_COMPLETION_INDEX": str(index)}, check=True, capture_output=True)
        subprocess.run(container("merge.yaml")["command"], env=env, check=True, capture_output=True)
        subprocess.run([command, "lab", "run", "--quick", "--out", alone, *ids], capture_output=True)
        names = sorted(path.name for path in alone.iterdir())
        merged = results / "merged"
        assert names == sorted(path.name for path in merged.iterdir()) and len(names) >= 2
        same, differ, odd = filecmp.cmpfiles(alone, merged, names, shallow=False)
        assert not differ and not odd, f"differ: {differ + odd}"
    spread = f"{len(dealt)} cells by the containers' own words, {workers} indices"
    print(f"{spread}: byte for byte the results of one process")


if __name__ == "__main__":
    main()
