"""The source as syntax trees: its imports, circles of them, and walks from call to call."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("judgeline", "resources", "assets", "pipelines")  # lowest first
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STEPS = "judgeline.steps."
ENGINE = ("judgeline.steps.memory", "run")
CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
Trees: TypeAlias = Mapping[str, ast.Module]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files(*folders: str, kind: str = "py") -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob(f"*.{kind}"))]


def parsed(*folders: str) -> dict[str, ast.Module]:
    return {dotted(path): ast.parse(path.read_text("utf-8")) for path in files(*folders)}


@cache
def entry_points() -> dict[str, list[str]]:
    """Modules that pyproject.toml declares, by their group of entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        group: [value.split(":")[0] for value in entries.values()]
        for group, entries in project["entry-points"].items()
    }


# ------------------------------------------------------------------ circles


def named_in_strings(node: ast.AST, trees: Trees) -> Iterator[str]:
    """Modules that a string names: to `import_module`, or as a group of entry points.

    An f-string may name every module that begins like it.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from entry_points().get(node.value, ())
    if not isinstance(node, ast.Call) or "import_module" not in vars(node.func).values():
        return
    match node.args:
        case [ast.Constant(value=str(name))]:
            yield name
        case [ast.JoinedStr(values=[ast.Constant(value=str(start)), *_])]:
            yield from (name for name in trees if name.startswith(start))
        case _:
            raise ValueError(f"{ast.unparse(node)} hides what it imports; give it a string")


def imports(tree: ast.AST, trees: Trees) -> set[str]:
    """Modules of ours that a module imports: anywhere, for types alone, or by a string.

    A module that is taken out of a package counts, its package does not.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {one if one in trees else str(node.module) for one in inside.values()}
        else:
            found |= {*named_in_strings(node, trees)}
    return found & trees.keys()


def circles(trees: Trees) -> list[list[str]]:
    """Sets of modules each of which imports all others, directly or not."""
    arrows = {name: imports(tree, trees) for name, tree in trees.items()}
    reached = {name: _reached(name, arrows) for name in trees}
    rings = {
        tuple(sorted(other for other in trees if name in reached[other] and other in reached[name]))
        for name in trees
        if name in reached[name]
    }
    return [list(ring) for ring in sorted(rings)]


def _reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        ahead += (new := arrows[ahead.pop()] - reached)
        reached |= new
    return reached


# ------------------------------------------------------------------ walks


class Place(NamedTuple):
    """A module, or a function or class in it; of a method also its class."""

    module: str
    node: ast.AST | None = None
    owner: ast.ClassDef | None = None


Names: TypeAlias = dict[str, Place | str | None]
"""Where a name leads: to a definition here, to another module's name, or to some value."""


def bound(nodes: Iterable[ast.AST], module: str) -> Names:
    names: Names = {}
    for node in nodes:
        match node:
            case ast.ImportFrom():
                names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            case ast.Import():
                names |= {one.asname: one.name for one in node.names if one.asname}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names[node.name] = Place(module, node)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                names[name] = None
    return names


class Walk:
    """A reader's way through the functions that one function leads to, in order of execution.

    A mention of a function of the trees leads into it, the first time: it is called there, or
    handed over to be called. A call of a class leads into its constructors. Methods of values stay
    closed, for only a class, ``self`` and ``cls`` say whose they are. `stays` are the modules of
    the functions entered, neighbours of one module as one; a stay in an earlier one is a return.
    Tables that `judgeline.steps.run` is asked for lead into their steps, after what these take.
    """

    def __init__(self, trees: Trees, module: str, name: str) -> None:
        self._tops = {own: bound(tree.body, own) for own, tree in trees.items()}
        self.stays: list[str] = []
        self._seen: set[ast.AST] = set()
        start = next(one for one in ast.walk(trees[module]) if getattr(one, "name", "") == name)
        self._enter(Place(module, start))

    @property
    def n_returns(self) -> int:
        return len(self.stays) - len(set(self.stays))

    def _enter(self, place: Place | None) -> None:
        if not place or not isinstance(place.node, FUNCTIONS) or place.node in self._seen:
            return
        self._seen.add(place.node)
        self.stays += [place.module][: self.stays[-1:] != [place.module]]
        inside = bound((one for one in ast.walk(place.node) if one is not place.node), place.module)
        for statement in place.node.body:
            self._read(statement, place, inside)

    def _read(self, node: ast.AST, here: Place, inside: Names) -> None:
        """Follow what a node mentions: arguments before the call, values before the element."""
        parts = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return  # read where it is mentioned
            case ast.Call():
                parts = [*node.args, *node.keywords, node.func]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                parts.sort(key=lambda part: not isinstance(part, ast.comprehension))
        for part in parts:
            self._read(part, here, inside)
        self._enter(self._named(node, here, inside))
        made = self._named(node.func, here, inside) if isinstance(node, ast.Call) else None
        for constructor in CONSTRUCTORS if made else ():
            self._enter(_method(made, constructor))
        if made and (made.module, getattr(made.node, "name", "")) == ENGINE:
            for name in ast.walk(node.args[0]):
                self._make(name.value if isinstance(name, ast.Constant) else "")

    def _make(self, table: str) -> None:
        """Enter the step that makes a table, after those of the tables that it takes."""
        steps = (
            names[table]
            for own, names in self._tops.items()
            if own.startswith(STEPS) and table in names
        )
        for step in steps:
            if isinstance(step, Place) and step.node not in self._seen:
                for taken in step.node.args.args:
                    self._make(taken.arg)
                self._enter(step)

    def _named(self, node: ast.AST, here: Place, inside: Names) -> Place | None:
        match node:
            case ast.Name(id="self" | "cls") if here.owner:
                return Place(here.module, here.owner)
            case ast.Name(id=name):
                return self._led(inside.get(name, f"{here.module}.{name}"))
            case ast.Attribute(value=value, attr=name) if of := self._named(value, here, inside):
                return _method(of, name) if of.node else self._led(f"{of.module}.{name}")
        return None

    def _led(self, to: Place | str | None) -> Place | None:
        if not isinstance(to, str):
            return to
        if to in self._tops:
            return Place(to)
        module, _, name = to.rpartition(".")
        return self._led(self._tops.get(module, {}).get(name))


def _method(place: Place, name: str) -> Place | None:
    body = place.node.body if isinstance(place.node, ast.ClassDef) else ()
    found = (one for one in body if isinstance(one, FUNCTIONS) and one.name == name)
    return next((Place(place.module, one, place.node) for one in found), None)
