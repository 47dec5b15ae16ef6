"""Where the repository and the command are."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"


@pytest.fixture(scope="session")
def command() -> str:
    """The command that the package is compared with: BELLWETHER, or the newest that was built here."""
    named = os.environ.get("BELLWETHER")
    if named:
        return named
    built = [ROOT / "target" / kind / "bellwether" for kind in ("release", "debug")]
    there = sorted((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime)
    found = str(there[-1]) if there else shutil.which("bellwether")
    if found is None:
        pytest.fail("no command to compare with: `cargo build --release`, or name one in BELLWETHER")
    return found


@pytest.fixture
def failover():
    import bellwether

    return bellwether.Scenario.load(SCENARIOS / "announce-failover.toml")
