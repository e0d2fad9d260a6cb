"""The ratchet: how large and how tangled the house is, in numbers that may only fall.

A change that raises a number edits it here and says why in CHANGELOG.md, under House. One that
lowers a number lowers it here too. `python -m pytest tests/test_house.py` names all that rose.

circles            sets of modules that import each other, directly or not (`sources.imports`)
callers            files outside judgeline/steps, tests apart, that call `rank_models`
column             files of the four packages, templates included, that name a column of the
                   leaderboard: those with the word judge_rating
lines              of Python files, as `wc -l` counts them
shared class names names of classes that several modules of the four packages define
stays, returns     of a reader's walk (`sources.Walk`): a rating, from the step heldout_ratings
                   with scored_battles given; `rank FILE`, from judgeline.api.rank_file; a
                   verdict, from the asset verdicts
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from sources import LAYERS, Trees, Walk, circles, entry_points, files, imports, parsed

NUMBERS = {
    "circles": 0,
    "callers": 4,
    "column": 19,
    "lines of judgeline": 43722,
    "lines of resources": 3484,
    "lines of assets": 5764,
    "lines of pipelines": 7132,
    "lines of papers": 3436,
    "lines of tests": 57696,
    "shared class names": 9,
    "stays of a rating": 51,
    "returns of a rating": 30,
    "stays of rank FILE": 180,
    "returns of rank FILE": 120,
    "stays of a verdict": 72,
    "returns of a verdict": 34,
}
FLOORS = (*LAYERS, "papers")
WALKS = {
    "a rating": ("judgeline.steps.elo", "heldout_ratings"),
    "rank FILE": ("judgeline.api", "rank_file"),
    "a verdict": ("assets.judging.assets", "verdicts"),
}


@cache
def house() -> Trees:
    return parsed(*FLOORS)


def calls(tree: ast.AST, function: str) -> bool:
    return any(
        isinstance(node, ast.Call) and function in vars(node.func).values()
        for node in ast.walk(tree)
    )


def words(path: Path) -> list[str]:
    return re.findall(r"\w+", path.read_text("utf-8"))


def shared_class_names() -> list[str]:
    defined = Counter(
        name
        for tree in house().values()
        for name in {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    )
    return [name for name, n_modules in defined.items() if n_modules > 1]


@cache
def measured() -> dict[str, int]:
    outside = house() | parsed("benchmarks")
    texts = [*files(*LAYERS), *files(*LAYERS, kind="j2")]
    walks = {name: Walk(house(), *start) for name, start in WALKS.items()}
    return {
        "circles": len(circles(house())),
        "callers": sum(
            calls(tree, "rank_models")
            for name, tree in outside.items()
            if not name.startswith("judgeline.steps")
        ),
        "column": sum("judge_rating" in words(path) for path in texts),
        **{
            f"lines of {floor}": sum(path.read_bytes().count(b"\n") for path in files(floor))
            for floor in (*FLOORS, "tests")
        },
        "shared class names": len(shared_class_names()),
        **{f"stays of {name}": len(walk.stays) for name, walk in walks.items()},
        **{f"returns of {name}": walk.n_returns for name, walk in walks.items()},
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_rises(name: str) -> None:
    before, now = NUMBERS[name], measured()[name]
    assert now <= before, (
        f"{name} rose from {before} to {now}: if it must, edit the number and say why in "
        "CHANGELOG.md under House"
    )


def test_every_number_is_held() -> None:
    assert measured().keys() == NUMBERS.keys()


def test_no_modules_import_each_other() -> None:
    assert circles(house()) == []


def trees(**texts: str) -> Trees:
    return {name.replace("__", "."): ast.parse(text) for name, text in texts.items()}


@pytest.mark.parametrize(
    "text",
    [
        "import a.one",
        "from a import one",
        "from a.one import thing",
        "def later():\n    from a.one import thing",
        "if TYPE_CHECKING:\n    from a.one import Thing",
        "importlib.import_module('a.one')",
        "import_module(f'a.o{rest}')",
    ],
)
def test_an_import_is_seen_in_every_form(text: str) -> None:
    together = trees(a="", a__one="import a.two", a__two=text)
    assert imports(together["a.two"], together) == {"a.one"}
    assert circles(together) == [["a.one", "a.two"]]


def test_a_hidden_import_is_refused_and_a_group_of_entry_points_is_one() -> None:
    with pytest.raises(ValueError, match="give it a string"):
        imports(ast.parse("import_module(name)"), {})
    for group, modules in entry_points().items():
        assert imports(ast.parse(f"found = {group!r}"), house()) == set(modules)


def test_a_walk_follows_each_function_once_in_order_of_execution() -> None:
    together = trees(
        room="from room.door import lock",  # a package hands on a name
        room__door="def lock(key): return lock(key)",
        hall=(
            "from functools import partial\n"
            "import room.door\n"
            "from room import door as way, lock\n"
            "from lamp import Lamp\n"
            "def enter(light):\n"
            "    way.lock(light(partial(dim, 1)))\n"
            "    lamp = Lamp(lock)\n"
            "    return lamp.off(Lamp.on(lamp)), dim()\n"
            "def dim(): return [way for way in (Lamp.on,)]\n"
        ),
        lamp=(
            "import hall\n"
            "class Lamp:\n"
            "    def __init__(self, key): self.on()\n"
            "    def on(self): hall.dim()\n"
            "    def off(self): return closed\n"
        ),
    )
    walk = Walk(together, "hall", "enter")
    assert walk.stays == ["hall", "lamp", "room.door", "lamp"]
    assert walk.n_returns == 1
