"""Configuration: keys and defaults, messages about mistakes (`mistakes.yaml`), and folders."""

import inspect
import math
import re
from operator import attrgetter
from pathlib import Path

import pytest
import yaml
from pydantic_core import to_jsonable_python

from assets.settings import narrowed
from judgeline.cli import rank
from judgeline.elo import RatingSettings
from judgeline.paths import ROOT, config_dir, home, tables_uri
from judgeline.rating_options import STATED, meaning
from judgeline.reliability.gate import CRITERIA, WITHHOLD
from judgeline.settings import Settings
from judgeline.suggest import unknown_name
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.entries import read_entries
from resources.config.options import (
    CONTROLS,
    CandidateOptions,
    GateOptions,
    PanelOptions,
    RefreshOptions,
)
from resources.corpora.reading import read_corpus

SHIPPED = ROOT / "config" / "corpora.yaml"
EXAMPLES = ROOT / "config" / "examples" / "corpora.yaml"
MISTAKES = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text("utf-8"))


RECORDED = {
    "l2": 0.01, "n_resamples": 200, "seed": 0, "hard_outcome": "derived", "miscoverage": 0.1,
    "n_splits": 5, "method": "auto", "std_error": "bootstrap", "resample_by": "question",
    "intervals": "calibrated", "win_rate_half_width": 0.05, "families": {},
}  # fmt: skip
"""Settings as tables have them recorded: with another value a table would be made again."""


@pytest.fixture
def load(tmp_path: Path):
    def loaded(text: str) -> CorpusDefinition:
        path = tmp_path / "corpora.yaml"
        path.write_text(text, encoding="utf-8")
        return next(iter(load_corpora(path).values()))

    return loaded


def test_a_corpus_is_read_with_its_defaults(load) -> None:
    tiny = load("tiny:\n  reader: battles\n  location: x.csv\n  arena_hard: null\n")
    assert (tiny.slug, tiny.display_name, tiny.location) == ("tiny", "tiny", "x.csv")
    assert (tiny.sample_size, tiny.seed, tiny.judges, tiny.revision) == (None, 0, None, None)
    rating = tiny.rating
    assert (rating.l2, rating.hard_outcome, rating.n_resamples) == (0.01, "derived", 200)
    assert (tiny.filters.languages, tiny.filters.single_turn) == (None, False)
    assert (tiny.panel, tiny.arena_hard) == (None, None)
    candidates = tiny.candidates
    assert (candidates.half_width, candidates.max_battles) == (60.0, 200)
    assert (candidates.budget, candidates.controls) == (["2000calls"], {})
    assert tiny.gate.thresholds == {name: limit for name, (_, limit) in CRITERIA.items()}
    assert set(GateOptions.model_fields) == {*CRITERIA, "withhold"}
    assert tuple(tiny.gate.withhold) == WITHHOLD


def test_a_setting_of_ratings_is_the_same_in_a_file_an_option_and_a_record(load) -> None:
    rating = load("t:\n  reader: arena\n").rating
    assert to_jsonable_python(rating) == RECORDED
    assert load("t:\n  reader: arena\n  rating: {n_resamples: 0}\n").rating.std_error == "analytic"
    head = re.findall(r"^#   rating\.(\w+) .*\((.*)\)$", SHIPPED.read_text("utf-8"), re.MULTILINE)
    assert dict(head) == {name: str(value) for name, value in RECORDED.items()}
    fit = RatingSettings()
    assert (fit.l2, fit.n_resamples, fit.seed) == (rating.l2, rating.n_resamples, rating.seed)
    options = inspect.signature(rank).parameters
    assert [options[name].default for name in STATED] == [getattr(Settings, one) for one in STATED]
    assert [name for name in RECORDED if not meaning(name).endswith(".")] == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("l2", -1, "a finite number, at least 0"),
        ("l2", math.nan, "a finite number, at least 0"),
        ("miscoverage", 1.0, "a finite number, more than 0 and less than 1"),
        ("n_splits", 2.5, "a whole number, at least 1 and at most 10000"),
        ("n_splits", 100_000, "a whole number, at least 1 and at most 10000"),
        ("std_error", "exact", "'analytic' or 'bootstrap'"),
        ("mean_kappa", 2, "a finite number, more than 0 and at most 1"),
    ],
)
def test_a_value_that_no_setting_has_is_refused_in_memory(name, value, expected) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; expected {expected}$"):
        Settings(**{name: value})


def test_options_are_set_one_by_one(load) -> None:
    given = load(
        "t:\n  display_name: T\n  reader: battles\n  filters: {languages: [German, en]}\n"
        "  gate: {kappa: 0.3, icc_average: null, withhold: [kappa]}\n  panel: {battles: 0}\n"
    )
    assert (given.filters.languages, given.panel) == (["de", "en"], PanelOptions(battles=0, runs=3))
    assert (given.gate.kappa, given.gate.icc_average, given.gate.withhold) == (0.3, None, ["kappa"])
    assert given.gate.parse_rate == CRITERIA["parse_rate"].threshold


def test_controls_are_names_or_names_with_options_and_a_budget_one_text_or_several() -> None:
    named = CandidateOptions.model_validate({"controls": list(CONTROLS)}).controls
    assert [named[name].bound for name in CONTROLS] == [0.0, 50.0]
    given = {"null-model": {"bound": 25, "text_file": "null.txt"}, "injected-instruction": None}
    controls = CandidateOptions.model_validate({"controls": given}).controls
    assert (controls["null-model"].bound, controls["null-model"].text_file) == (25.0, "null.txt")
    assert controls["injected-instruction"].bound == 50.0
    for options in (CandidateOptions, RefreshOptions):
        assert options(budget="500calls 2USD").budget == ["500calls", "2USD"]
        assert options(budget=["1Mtokens"]).budget == ["1Mtokens"]


def test_the_shipped_file_loads_without_any_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGELINE_DATA", "SOFTELO_ANNOTATIONS", "LMARENA_100K_REVISION"):
        monkeypatch.delenv(name, raising=False)
    corpora = load_corpora(SHIPPED) | load_corpora(EXAMPLES)
    assert {"arena", "softelo-sample", "lmarena-100k", "comparia"} <= set(corpora)
    sample = corpora["softelo-sample"]
    assert sample.location == "data/softelo_lmarena100k_sample.csv"
    rating = sample.rating
    assert (rating.l2, rating.hard_outcome, rating.n_resamples) == (0.005, "recorded", 20)
    assert sample.judges == ["recorded"]
    assert corpora["lmarena-100k"].revision is None
    assert corpora["arena"].panel == PanelOptions(battles=50, runs=3)


UNPINNED = ("lmarena-100k", "lmarena-140k", "lmarena-55k", "comparia")


@pytest.mark.parametrize("slug", [*UNPINNED, "softelo-annotations"])
def test_a_variable_without_value_is_an_error_when_the_corpus_is_read(slug, monkeypatch):
    told = rf"'{slug}' .* has no revision.* copy the commit's hash"
    monkeypatch.delenv("SOFTELO_ANNOTATIONS", raising=False)
    monkeypatch.delenv(f"{slug.upper().replace('-', '_')}_REVISION", raising=False)
    message = told if slug in UNPINNED else "SOFTELO_ANNOTATIONS, which is not set; set it"
    with pytest.raises(ValueError, match=message):
        read_corpus(load_corpora(EXAMPLES)[slug])


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "data/x.csv"), ("", "data/x.csv"), ("/else", "/else/x.csv")]
)
def test_variables_have_defaults(value, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_FOLDER", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_FOLDER", value)
    given = CorpusDefinition(slug="t", reader="battles", location="${SOME_FOLDER:-data}/x.csv")
    assert given.location == expected


@pytest.mark.parametrize(("text", "message"), MISTAKES["files"])
def test_a_mistake_is_told_with_file_place_and_remedy(load, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load(text)
    assert "corpora.yaml" in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(("line", "message"), MISTAKES["keys"])
def test_a_mistake_in_a_group_is_told_by_its_key(load, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"line [14]: corpus 't'.*{message}"):
        load(f"t:\n  reader: battles\n  location: x.csv\n  {line}\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    told = r"nowhere\.yaml; create it, or set JUDGELINE_CONFIG"
    with pytest.raises(FileNotFoundError, match=told):
        load_corpora(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("value", "known", "hint"),
    [
        ("areena", ["arena", "comparia"], "did you mean 'arena'?"),
        ("GPT-4O", ["gpt-4o", "llama"], "did you mean 'gpt-4o'?"),
        ("gpt-4o", ["GPT-4o", "GPT-4O", "llama"], "did you mean 'GPT-4O' or 'GPT-4o'?"),
        ("zzz", ["b", "a"], "known are a, b."),
        ("zzz", [], "none is known yet."),
    ],
)
def test_unknown_names(value, known, hint) -> None:
    assert unknown_name("corpus", value, known, "config/corpora.yaml") == (
        f"unknown corpus {value!r}; {hint} Correct the name, or add it to config/corpora.yaml."
    )


# What YAML makes of a value is told by its place, never in its words

BEFORE = "first: 1\nsecond:\n  inner: [2024-01-02, 7]\n"


@pytest.mark.parametrize(
    "value",
    [
        "!!int sk-secret", "!!int ''", "!!float sk-secret", "!!bool sk-secret",
        "!!timestamp sk-secret", "2024-13-45", "2024-01-02 03:04:05 +99:99",
        '"sk-secret \\UFFFFFFFF"', "9" * 5000,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("form", "line"), [("third: {}\n", 4), ("third:\n  sk-key: [1, {}]\n", 5), ("? {}\n: 3\n", 4)]
)
def test_a_value_that_is_not_what_it_is_written_as_is_told_by_its_line(tmp_path, value, form, line):
    file = tmp_path / "some.yaml"
    file.write_text(BEFORE + form.format(value), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"some\.yaml, line {line}: a value here") as caught:
        read_entries(file, "things")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "sk-" not in str(caught.value)
    assert "month" not in str(caught.value)


def test_values_and_lines_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(BEFORE + "third: &a {x: 0x1F}\nfourth: *a\n", encoding="utf-8")
    entries = read_entries(file, "things")
    assert entries.values["fourth"] == {"x": 31}
    assert [entries.line("third", "x"), entries.line("second", "inner", "0")] == [4, 3]
    file.write_text("a: &a {b: *a}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="nested too deeply") as caught:
        read_entries(file, "things")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_everything_lies_in_the_checkout_unless_it_is_moved(monkeypatch, tmp_path: Path) -> None:
    for name in ("JUDGELINE_HOME", "JUDGELINE_CONFIG", "JUDGELINE_TABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert (ROOT / "pyproject.toml").is_file()
    assert (home(), config_dir()) == (ROOT / ".judgeline", ROOT / "config")
    assert tables_uri() == str(ROOT / ".judgeline" / "tables")
    monkeypatch.setenv("JUDGELINE_HOME", "here")  # a relative home becomes absolute
    assert (home(), tables_uri()) == (tmp_path / "here", str(tmp_path / "here" / "tables"))
    monkeypatch.setenv("JUDGELINE_TABLES", "s3://bucket/tables")
    assert tables_uri() == "s3://bucket/tables"


# A table has no setting but those that are recorded with it

CORPUS = CorpusDefinition(slug="c", reader="arena", seed=3, rating={"l2": 0.5})


def test_a_setting_that_was_not_named_is_an_error() -> None:
    own = narrowed(CORPUS, {"slug", "seed", "rating.l2"})
    assert (own.slug, own.seed, own.rating.l2) == ("c", 3, 0.5)
    assert narrowed(CORPUS, {"rating", "rating.l2"}).rating == CORPUS.rating
    for name in ("reader", "candidates", "rating.seed"):
        with pytest.raises(AttributeError, match=name.rpartition(".")[2]):
            attrgetter(name)(own)
        attrgetter(name)(CORPUS)  # the entry itself keeps everything
