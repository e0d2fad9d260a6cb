"""`config/corpora.yaml`: the keys of a corpus, their defaults, and the messages about mistakes."""

from pathlib import Path

import pytest

from judgeline.reliability.gate import CRITERIA, WITHHOLD
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.options import (
    CONTROLS,
    CandidateOptions,
    GateOptions,
    PanelOptions,
    RefreshOptions,
)
from resources.config.paths import ROOT
from resources.corpora.reading import read_corpus
from resources.suggest import unknown_name

SHIPPED = ROOT / "config" / "corpora.yaml"


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
    assert (tiny.rating.l2, tiny.rating.hard_outcome, tiny.rating.n_resamples) == (
        0.01,
        "derived",
        200,
    )
    assert (tiny.filters.languages, tiny.filters.single_turn) == (None, False)
    assert (tiny.panel, tiny.arena_hard) == (None, None)
    candidates = tiny.candidates
    assert (candidates.half_width, candidates.max_battles) == (60.0, 200)
    assert (candidates.budget, candidates.controls) == (["2000calls"], {})
    assert tiny.gate.thresholds == {name: limit for name, (_, limit) in CRITERIA.items()}
    assert (set(GateOptions.model_fields), tuple(tiny.gate.withhold)) == (
        {*CRITERIA, "withhold"},
        WITHHOLD,
    )


def test_options_are_set_one_by_one(load) -> None:
    given = load(
        "t:\n  display_name: T\n  reader: battles\n  filters: {languages: [German, en]}\n"
        "  gate: {kappa: 0.3, icc_average: null, withhold: [kappa]}\n  panel: {battles: 0}\n"
    )
    assert (given.filters.languages, given.panel) == (["de", "en"], PanelOptions(battles=0, runs=3))
    assert (given.gate.kappa, given.gate.icc_average, given.gate.withhold) == (0.3, None, ["kappa"])
    assert given.gate.parse_rate == CRITERIA["parse_rate"].threshold


def test_controls_are_names_or_names_with_options() -> None:
    named = CandidateOptions.model_validate({"controls": list(CONTROLS)}).controls
    assert {name: control.bound for name, control in named.items()} == {
        "null-model": 0.0,
        "injected-instruction": 50.0,
        "copy-of-opponent": 50.0,
    }
    given = {"null-model": {"bound": 25, "text_file": "null.txt"}, "copy-of-opponent": None}
    controls = CandidateOptions.model_validate({"controls": given}).controls
    assert (controls["null-model"].bound, controls["null-model"].text_file) == (25.0, "null.txt")
    assert controls["copy-of-opponent"].bound == 50.0


@pytest.mark.parametrize("options", [CandidateOptions, RefreshOptions])
def test_a_budget_is_one_text_or_several(options) -> None:
    assert options(budget="500calls 2USD").budget == ["500calls", "2USD"]
    assert options(budget=["1Mtokens"]).budget == ["1Mtokens"]


def test_the_shipped_file_loads_without_any_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGELINE_DATA", "SOFTELO_ANNOTATIONS", "LMARENA_100K_REVISION"):
        monkeypatch.delenv(name, raising=False)
    corpora = load_corpora(SHIPPED)
    assert {"arena", "softelo-sample", "lmarena-100k", "comparia"} <= set(corpora)
    sample = corpora["softelo-sample"]
    assert sample.location == "data/softelo_lmarena100k_sample.csv"
    assert (sample.rating.l2, sample.rating.hard_outcome, sample.rating.n_resamples) == (
        0.005,
        "recorded",
        20,
    )
    assert sample.judges == ["recorded"]
    assert corpora["lmarena-100k"].revision is None
    assert corpora["arena"].panel == PanelOptions(battles=50, runs=3)


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        *(
            (slug, rf"'{slug}' .* has no revision.* copy the commit's hash")
            for slug in ("lmarena-100k", "lmarena-140k", "lmarena-55k", "comparia")
        ),
        ("softelo-annotations", "SOFTELO_ANNOTATIONS, which is not set; set it"),
    ],
)
def test_a_variable_without_value_is_an_error_when_the_corpus_is_read(
    slug: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOFTELO_ANNOTATIONS", raising=False)
    monkeypatch.delenv(f"{slug.upper().replace('-', '_')}_REVISION", raising=False)
    with pytest.raises(ValueError, match=message):
        read_corpus(load_corpora(SHIPPED)[slug])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "data/x.csv"), ("", "data/x.csv"), ("/else", "/else/x.csv")],
)
def test_variables_have_defaults(value, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_FOLDER", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_FOLDER", value)
    given = CorpusDefinition(slug="t", reader="battles", location="${SOME_FOLDER:-data}/x.csv")
    assert given.location == expected


MISTAKES = [
    ("", "holds no corpora"),
    ("- a\n", "holds no corpora"),
    ("a: [\n", "not valid YAML"),
    ("a: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ("a: 3\n", "line 1: corpus 'a' is 3; expected display_name"),
    ("1: {}\n", "corpus 1: a slug is .* put it in quotes"),
    ("A B:\n  reader: battles\n", "corpus 'A B': a slug is lower-case letters"),
    ("a:\n  slug: a\n  reader: battles\n", "has a key 'slug'; its key above is the slug: remove"),
    ("a:\n  display_name: A\n", "line 1: corpus 'a' lacks the key 'reader'; add it"),
    ("a:\n  seed: -1\n", r"'reader'; add it\n.*'seed', is wrong"),
    (
        "a:\n  display_name: A\n  reader: lmarena100k\n",
        "line 3: corpus 'a', key 'reader', is wrong: .*did you mean 'lmarena-100k'",
    ),
    (
        "a:\n  reader: battles\na:\n  reader: arena\n",
        "line 3: the key 'a' is there already, in line 1",
    ),
    (
        "a:\n  reader: arena-hard\n  arena_hard: null\n",
        "line 1: corpus 'a' is wrong: .*'arena_hard' go together",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_told_with_file_place_and_remedy(load, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load(text)
    assert "corpora.yaml" in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sample_sise: 3", "unknown key 'sample_sise'; did you mean 'sample_size'"),
        ("arena: {n_battles: 3}", "options under 'arena' need 'reader: arena'; remove"),
        ("arena_hard: {}", "'arena_hard' go together"),
        ("rating: {sead: 1}", "unknown key 'rating.sead'; did you mean 'seed'"),
        ("rating: {miscoverage: 1.5}", "'rating.miscoverage', .*less than 1 .found 1.5.; correct"),
        ("filters: {languages: [Klingonese]}", "'filters.languages', .*'Klingonese' is no .* ISO"),
        ("filters: {languages: []}", "keeps nothing; remove the key"),
        ("gate: {kapa: 0.3}", "'gate.kapa'; did you mean 'kappa'"),
        ("gate: {kappa: 1.3}", "'gate.kappa', .*less than or equal to 1"),
        ("gate: {icc_average: .nan}", "'gate.icc_average', .*finite"),
        ("gate: {withhold: [parse_rat]}", "'gate.withhold', .*did you mean 'parse_rate'"),
        ("gate: {withhold: [9]}", "'gate.withhold.0', .*valid string"),
        ("panel: {battle: 20}", "'panel.battle'; did you mean 'battles'"),
        ("panel: {runs: 1}", "'panel.runs', .*greater than or equal to 2"),
        ("panel: {battles: -1}", "'panel.battles', .*greater than or equal to 0"),
        ("reference: {n_population: 1}", "'reference.n_population', is wrong"),
        ("reference: {mean_kappa: 0}", "'reference.mean_kappa', is wrong"),
        ("reference: {modle: x}", "'reference.modle'; did you mean 'model'"),
        ("reference: [x]", "'reference', is wrong"),
        ("refresh: {budget: 5USD 6USD}", "'refresh.budget', .*twice"),
        ("refresh: {budget: []}", "'refresh.budget', .*at least 1 item"),
        ("refresh: {budget: '  '}", "'refresh.budget', .*at least 1 item"),
        ("refresh: {budget: lots}", "'refresh.budget', .*the budget 'lots' is none"),
        ("candidates: {budget: much}", "'candidates.budget', .*budget 'much' is none"),
        ("candidates: {budget: []}", "'candidates.budget', .*at least 1 item"),
        ("candidates: {budget: 5}", "'candidates.budget', .*valid list"),
        ("candidates: {half_width: 0}", "'candidates.half_width', .*greater than 0"),
        (
            "candidates: {max_battles: 19}",
            "'candidates.max_battles', .*or equal to 20",
        ),
        ("candidates: {half: 1}", "'candidates.half'; remove it; known keys are half_width"),
        ("candidates: {controls: [nul-model]}", "did you mean 'null-model'"),
        ("candidates: {controls: {copy-of-opponent: {carrier: x}}}", "of injected-instruction"),
        (
            "candidates: {controls: {null-model: {bond: 3}}}",
            "null-model.bond'; remove",
        ),
        ("candidates: {controls: {null-model: 3}}", "'candidates.controls.null-model', is wrong"),
        ("candidates: {controls: 3}", "'candidates.controls', is wrong"),
    ],
)
def test_a_mistake_in_a_group_is_told_by_its_key(load, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"line [14]: corpus 't'.*{message}"):
        load(f"t:\n  reader: battles\n  location: x.csv\n  {line}\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"nowhere\.yaml; create it, or set JUDGELINE_CONFIG"
    ):
        load_corpora(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("value", "known", "hint"),
    [
        ("areena", ["arena", "comparia"], "did you mean 'arena'?"),
        ("zzz", ["b", "a"], "known are a, b."),
        ("zzz", [], "none is known yet."),
    ],
)
def test_unknown_names(value, known, hint) -> None:
    assert unknown_name("corpus", value, known, "config/corpora.yaml") == (
        f"unknown corpus {value!r}; {hint} Correct the name, or add it to config/corpora.yaml."
    )
