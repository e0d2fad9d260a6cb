"""Pages of the site that are made of declarations: tables, and the Python that a notebook calls.

The page of a table has what a row is, the columns with their words, the checks, what the table is
made from and for, the settings of its step, and the functions that compute it. A page of Python has
a group of doors, or a package. Nothing of them is committed.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from typing import Any

import dagster as dg

import judgeline.api
from judgeline.settings import Settings
from judgeline.steps import STEPS, Step
from judgeline.tables.schema import Table
from judgeline.tables.words import WORDS
from pipelines.definitions import build_definitions
from resources.tables.declared import TABLES

DOORS = {
    "Ratings": "rank plain pool Board Ranking Settings QualityGateError",
    "Judges and files": "doctor Diagnosis ask score judge_gate agreement consistency",
    "Releases and votes": "gate ReleaseGate plan Plan vote VotePage",
    "Rates": "win_rates pass_rates split_labels reference_ratings",
    "Learnt judges": "learn_judge LearntJudge learn_ratings LearntRatings",
}
"""What a notebook calls, by page: names in `judgeline.api`."""

_SCIENCE = (
    "verdict", "elo", "intervals", "winrate", "reference", "trust", "quantitative", "reliability",
    "diagnostics", "sampling",
)  # fmt: skip
_PACKAGES = [*(f"judgeline.{one}" for one in ("rating_options", *_SCIENCE)), "papers.reproduce"]
_DOOR = (
    "::: judgeline.api.{}\n    options: {{show_root_heading: true, show_root_full_path: false}}\n"
)
_SECTION = re.compile(r"\n(?=[A-Z][a-z]+\n-+\n)")
_GRAPH = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_LOADED = re.compile(r'<!-- Load mathjax -->.*?<script type="module">.*?</script>', re.DOTALL)


@cache
def graph() -> Any:
    """Return the graph of the lineage: what its tables are made from, and what checks them."""
    return build_definitions().resolve_asset_graph()


def table_page(name: str) -> str:
    """Return the page of a table in Markdown."""
    table, step, node = TABLES[name], STEPS.get(name), graph().get(dg.AssetKey(name))
    parts = [
        f"# {name}",
        inspect.cleandoc(node.description),
        f"One row for each {', '.join(f'`{one}`' for one in table.key)}.",
        "## Columns",
        _table("column | type | meaning, with its unit", _columns(table)),
        "## Checks",
        _table("check | guards | if it fails | holds where | remedy", _checks(name)),
        "## Made from",
        _table("table | ", _inputs(name, step)),
        "## Made for",
        ", ".join(map(_link, _tables(node.child_keys))) or "No other table.",
    ]
    return "\n\n".join([*parts, *_of_step(step)]) + "\n"


def tables_list() -> str:
    """Return the list of all tables in Markdown, by their group."""
    nodes = sorted((graph().get(dg.AssetKey(name)) for name in TABLES), key=_group)
    parts = []
    for group, members in groupby(nodes, key=_group):
        rows = [(node.key.to_user_string(), _first(node.description)) for node in members]
        linked = [(_link(name, "tables/"), row) for name, row in rows]
        parts += [f"## {group}", _table("table | a row", linked)]
    return "\n\n".join(parts)


def python_pages() -> dict[str, str]:
    """Return the pages of Python in Markdown, by path: groups of doors, then packages."""
    groups = {group: "\n".join(map(_DOOR.format, names.split())) for group, names in DOORS.items()}
    texts = groups | {package: f"::: {package}\n" for package in _PACKAGES}
    return {_python_path(title): f"# {title}\n\n{text}" for title, text in texts.items()}


def doors_list() -> str:
    """Return the list of what a notebook calls in Markdown by page, and that of the packages."""
    parts = []
    for group, names in DOORS.items():
        doors = [(name, getattr(judgeline.api, name)) for name in names.split()]
        rows = [(f"[`{name}`][judgeline.api.{name}]", _first(one.__doc__)) for name, one in doors]
        parts += [f"## [{group}]({_python_path(group)})", _table("name | ", rows)]
    packages = [(f"[`{one}`]({_python_path(one)})", import_module(one)) for one in _PACKAGES]
    rows = [(link, _first(package.__doc__)) for link, package in packages]
    return "\n\n".join([*parts, "## Packages", _table("package | ", rows)])


def _python_path(title: str) -> str:
    return f"python/{title.removeprefix('judgeline.').replace(' ', '-').lower()}.md"


def arrows_table(graph: str) -> str:
    """Return the arrows of a Mermaid graph as a table, since a page from a file cannot draw it."""
    arrows = sorted(re.findall(r"(\w+) --> (\w+)", graph))
    rows = [
        (f"`{source}`", ", ".join(f"`{target}`" for _, target in group))
        for source, group in groupby(arrows, key=itemgetter(0))
    ]
    return _table("package | imports", rows)


def _members(module: str, names: str = "") -> str:
    """Return the directive that documents names of a module; all public ones where none is told."""
    options = f"    options:\n      members: [{', '.join(names.split())}]\n" if names else ""
    return f"::: {module}\n{options}"


def _group(node: Any) -> str:
    return str(node.group_name)


def _tables(keys: Iterable[dg.AssetKey]) -> list[str]:
    """Return the names of declared tables among assets, in the order of their declarations."""
    names = {key.to_user_string() for key in keys}
    return [name for name in TABLES if name in names]


def _columns(table: Table) -> Iterator[tuple[str, ...]]:
    for name, kind in table.dtypes.items():
        yield f"`{name}`", kind, WORDS[name][1]


def _checks(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the row of each check: its meaning, its effect, and if it is declared its rules."""
    declared = {check.name: check for check in TABLES[name].checks}
    for key in sorted(graph().get_check_keys_for_assets({dg.AssetKey(name)})):
        spec, check = graph().get_check_spec(key), declared.get(key.name)
        effect = "see its result" if check is None else "warns" if check.warns else "fails"
        effect = "stops what follows" if spec.blocking else effect
        rules = "; ".join(rule.note for rule in check.rules) if check else "by its own statistics"
        remedy = check.remedy if check and isinstance(check.remedy, str) else "in its result"
        yield f"`{key.name}`", " ".join(spec.description.split()), effect, rules, remedy


def _inputs(name: str, step: Step | None) -> Iterator[tuple[str, ...]]:
    """Yield each table that one is made from; of a step it says which may be missing."""
    for one in _tables(graph().get(dg.AssetKey(name)).parent_keys):
        may_lack = step is not None and not step.takes.get(one, True)
        yield _link(one), "may be missing" if may_lack else ""


def _of_step(step: Step | None) -> Iterator[str]:
    """Yield the settings that a step reads, and the functions of the science that it calls."""
    if step is None:
        return
    if step.reads:
        words, default = settings_words(), Settings()
        rows = [(f"`{one}`", f"`{getattr(default, one)!r}`", words[one]) for one in step.reads]
        yield "## Settings"
        yield _table("setting | by default | meaning", rows)
    yield "## Source"
    yield f"The step `{step.function.__module__}.{step.name}`, by these functions:"
    yield "\n".join(f"- {text}" for text in map(_function, called(step)))


@cache
def settings_words() -> dict[str, str]:
    """Return the meaning of each setting, from the docstrings of `Settings` and its bases."""
    texts = "\n\n".join(filter(None, map(inspect.getdoc, Settings.__mro__)))
    found = re.findall(r"^(\w+) : .*\n((?:[ ]+.*\n?)+)", texts, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def called(step: Step) -> list[Callable[..., Any]]:
    """Return the functions of the science that a step calls, itself or through other steps'."""
    found: dict[str, Callable[..., Any]] = {}
    left, seen = [step.function], set[str]()
    while left:
        function = left.pop(0)
        known = [function.__globals__.get(name) for name in function.__code__.co_names]
        for one in filter(inspect.isfunction, known):
            place = f"{one.__module__}.{one.__qualname__}"
            package, _, _ = one.__module__.removeprefix("judgeline.").partition(".")
            if package == "steps":
                left += [] if place in seen else [one]
            elif package in _SCIENCE:
                found[place] = one
            seen.add(place)
    return list(found.values())


def _function(function: Callable[..., Any]) -> str:
    """Return a function's name, its first sentence and its references."""
    text = inspect.getdoc(function) or ""
    words = f"`{function.__module__}.{function.__qualname__}`: {_first(text)}"
    cited = [one for one in _SECTION.split(text) if one.startswith("References\n")]
    return " ".join([words, *(" ".join(one.split()[2:]) for one in cited)])


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; a word where it has no rows."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = " | ".join("---" for _ in head.split("|"))
    return "\n".join(f"| {line} |" for line in (head, rule, *lines)) if lines else "None."


def _link(name: str, folder: str = "") -> str:
    return f"[{name}]({folder}{name}.md)"


def _first(text: str) -> str:
    """Return the first sentence of a docstring in one line."""
    return re.split(r"(?<=\.)\s", " ".join(inspect.cleandoc(text).partition("\n\n")[0].split()))[0]


# Events of MkDocs

LISTS = {"<!-- doors -->": doors_list, "<!-- tables -->": tables_list}
"""Lists of pages, by the comment in whose place they stand."""


def on_config(config: Any) -> Any:
    """Add the pages of Python and of the tables to the navigation."""
    config.nav.append({"Python": ["api.md", *python_pages()]})
    config.nav.append({"Tables": ["tables.md", *(f"tables/{name}.md" for name in TABLES)]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of Python and of the tables to the files of the site."""
    from mkdocs.structure.files import File

    texts = python_pages() | {f"tables/{name}.md": table_page(name) for name in TABLES}
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page, with the lists that it calls for, and graphs as tables."""
    for place, make in LISTS.items():
        markdown = markdown.replace(place, make()) if place in markdown else markdown
    return _GRAPH.sub(lambda graph: arrows_table(graph[1]), markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Return a page without the programs that the notebook's converter loads from elsewhere."""
    return _LOADED.sub("", output)
