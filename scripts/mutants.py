"""Plants every bug of tests/mutants, one at a time, and shows which layer of the tests kills it.

A patch says in its head what the bug is, which layer must see it and by which tests. It is applied
to a copy of the tree, never to the tree itself. A bug that lives, a patch that no longer applies
and one that does not compile are failures; so is a test that fails without any bug.

    python scripts/mutants.py [NAME ...]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "mutants"
# Beside the build, so that `cargo clean` takes it away too.
SCRATCH = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"
TREE = SCRATCH / "tree"
# Each bug is a build of its own: what counts is how fast it compiles.
BUILD = {
    "CARGO_TARGET_DIR": str(SCRATCH / "target"),
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "false",
    "RUST_BACKTRACE": "0",
}
TIMEOUT = 600


@dataclass(frozen=True)
class Mutant:
    """A planted bug."""

    path: Path
    what: str
    layer: str
    test: list[str]

    @classmethod
    def read(cls, path: Path) -> Mutant:
        """The head of a patch."""
        head = path.read_text(encoding="utf-8").split("\n--- ")[0]
        layer = re.search(r"^Layer: (.+)$", head, re.MULTILINE)
        test = re.search(r"^Test: (.+)$", head, re.MULTILINE)
        if not layer or not test:
            raise SystemExit(f"{path}: the head must have a line 'Layer: ..' and one 'Test: ..'")
        return cls(path, head.splitlines()[0], layer[1], test[1].split())


def copy_tree() -> None:
    """A fresh copy of every file that git knows; files that are the same keep their times."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in TREE.rglob("*"):
        if path.is_file() and str(path.relative_to(TREE)) not in names:
            path.unlink()
    for name in names:
        source, target = ROOT / name, TREE / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def apply(mutant: Mutant, *options: str) -> bool:
    """Whether git could apply the patch."""
    command = ["git", "apply", *options, str(mutant.path)]
    # Outside any repository, so that paths are those of the copy.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(TREE.parent)}
    return (
        subprocess.run(command, cwd=TREE, env=env, check=False, capture_output=True).returncode == 0
    )


def cargo(*arguments: str) -> tuple[int, str]:
    """Exit status and output of a cargo command in the copy."""
    command = ["cargo", *arguments]
    env = {**os.environ, **BUILD}
    done = subprocess.run(
        command, cwd=TREE, env=env, check=False, capture_output=True, text=True, timeout=TIMEOUT
    )
    return done.returncode, done.stdout + done.stderr


def split(test: list[str]) -> tuple[list[str], list[str]]:
    """The target of a test line, and its filter."""
    size = 3 if "--lib" in test else 4
    return test[:size], test[size:]


def verdict(mutant: Mutant) -> str:
    """What became of a bug: 'killed by ..', or why it was not."""
    if not apply(mutant):
        return "the patch no longer applies: make it again"
    try:
        target, name = split(mutant.test)
        status, output = cargo("test", "--release", "--locked", "--no-run", *target)
        if status:
            return "does not compile: " + output[-2000:]
        try:
            status, output = cargo("test", "--release", "--locked", *target, *name)
        except subprocess.TimeoutExpired:
            return f"the tests did not end within {TIMEOUT} s"
        failed = sorted(set(re.findall(r"^test (\S+) \.\.\. FAILED", output, re.MULTILINE)))
        if status and failed:
            return f"killed by {', '.join(failed)}"
        if "running 0 tests" in output and "passed" in output and "1 passed" not in output:
            return "no test has that name"
        return "LIVES"
    finally:
        if not apply(mutant, "-R"):
            raise SystemExit(f"{mutant.path} could not be taken back from {TREE}")


def unsound(mutants: list[Mutant]) -> list[str]:
    """The tests that fail on the tree as it is, and so show nothing."""
    tests = sorted({tuple(mutant.test) for mutant in mutants})
    return [" ".join(test) for test in tests if cargo("test", "--release", "--locked", *test)[0]]


def main() -> int:
    """Run and report."""
    wanted = set(sys.argv[1:])
    mutants = [Mutant.read(path) for path in sorted(PATCHES.glob("*.patch"))]
    mutants = [mutant for mutant in mutants if not wanted or mutant.path.stem in wanted]
    copy_tree()
    if failing := unsound(mutants):
        print("these tests fail without any bug:", *failing, sep="\n")
        return 1
    alive = 0
    for mutant in mutants:
        start = time.monotonic()
        found = verdict(mutant)
        killed = found.startswith("killed")
        alive += not killed
        seconds = time.monotonic() - start
        print(f"{mutant.path.stem:52} {mutant.layer:24} {found}  ({seconds:.0f} s)", flush=True)
    print(f"{len(mutants) - alive} of {len(mutants)} planted bugs killed")
    return 1 if alive or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
