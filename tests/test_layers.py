"""Imports point down: pipelines -> assets -> resources -> judgeline, whose core stays pure."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import LAYERS, ROOT, dotted, files

FRONT = (
    ("tables",),
    ("report", "io"),
    ("settings", "steps", "judges"),
    ("api", "cli", "options", "terminal"),
)
"""Rooms of the library above the ten packages, lowest first."""
CORE = sorted(
    path.parent.name
    for path in (ROOT / "judgeline").glob("*/__init__.py")
    if path.parent.name not in FRONT[0] + FRONT[1] + FRONT[2]
)
HEAVY = {"dagster", "pandas", "pyarrow", "great_expectations", "matplotlib", "rich", "yaml"}
NETWORK = {"http.client", "ssl", "socket", "urllib.request", "ftplib", "smtplib", "asyncio"}


def imported(path: Path) -> Iterator[str]:
    """Names of the modules that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    upward = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(layer)
        for name in imported(path)
        if name.split(".")[0] in above
    ]
    assert upward == []


def test_imports_of_the_library_point_down() -> None:
    """`cli`, `api` use steps and judges; those, `report` and `io`; these, `tables`; it, the ten."""
    floors = (CORE, *FRONT)
    upward = [
        f"{path.relative_to(ROOT)} imports {name}"
        for floor, names in enumerate(floors)
        for path in files("judgeline")
        if path.relative_to(ROOT / "judgeline").with_suffix("").parts[0] in names
        for name in imported(path)
        for above in floors[floor + 1 :]
        if name.startswith("judgeline.") and name.split(".")[1] in above
    ]
    assert len(CORE) == 10
    assert upward == []


def test_the_core_names_numpy_and_scipy_only() -> None:
    """Not even inside a function, where a fresh interpreter would not see it."""
    known = {"judgeline", "numpy", "scipy", *sys.stdlib_module_names}
    foreign = [
        f"{path.relative_to(ROOT)} imports {name}"
        for room in CORE
        for path in files(f"judgeline/{room}")
        for name in imported(path)
        if name.split(".")[0] not in known
    ]
    assert foreign == []


def test_imports_start_from_the_top() -> None:
    relative = [
        f"{path.relative_to(ROOT)} imports {name}"
        for layer in LAYERS
        for path in files(layer)
        for name in imported(path)
        if name.startswith(".")
    ]
    assert relative == []


def loaded(*statements: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after the statements."""
    script = "\n".join([*statements, "import sys, json", "print(json.dumps(list(sys.modules)))"])
    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_the_core_needs_numpy_and_scipy_only() -> None:
    names = ["judgeline", *(dotted(p) for room in CORE for p in files(f"judgeline/{room}"))]
    statements = [f"import {name}" for name in names]
    assert len(statements) > 5
    core = loaded(*statements)
    # what numpy and scipy bring along on this machine, compiled helpers included
    stack = loaded("import numpy.random, scipy.linalg, scipy.special, scipy.stats, scipy.sparse")
    added = {name.split(".")[0] for name in core - stack} - sys.stdlib_module_names
    assert added <= {"judgeline", "numpy", "scipy"}
    assert (core - stack) & NETWORK == set()
    assert {name.split(".")[0] for name in core} & HEAVY == set()


def test_help_needs_no_table_library() -> None:
    help_of_all = loaded("from judgeline.cli import main", "main(['--help'])")
    assert "pipelines.commands.cli" in help_of_all
    names = {name.split(".")[0] for name in help_of_all}
    assert names & (HEAVY | {"numpy", "scipy"}) == {"rich"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "pipelines.definitions",
        "pipelines.commands.leaderboards",
        "pipelines.commands.cli",
        "judgeline.api",
    ],
)
def test_what_few_need_is_imported_where_it_is_used(module: str) -> None:
    """Every run is a process that imports the lineage first."""
    early = {"openai", "scipy.stats", "great_expectations"}
    assert loaded(f"import {module}") & early == set()


def reached(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Pairs of rooms with a chain of arrows from the first to the second."""
    further = arrows | {(a, d) for a, b in arrows for c, d in arrows if b == c}
    return arrows if further == arrows else reached(further)


def test_the_picture_of_the_packages_is_true() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    arrows = {
        tuple(line.split(" --> ")) for line in page.split("```")[1].splitlines() if "-->" in line
    }
    drawn = {(a.strip(), b.strip()) for a, b in arrows if a.strip() not in LAYERS}
    rooms = {
        path: path.relative_to(ROOT / "judgeline").with_suffix("").parts[0]
        for path in files("judgeline")
    }
    imports = {
        (room, name.split(".")[1])
        for path, room in rooms.items()
        for name in imported(path)
        if name.startswith("judgeline.")
        and room != name.split(".")[1]
        and room not in ("__init__", "__main__")
    }
    assert reached(drawn) == reached(imports)
