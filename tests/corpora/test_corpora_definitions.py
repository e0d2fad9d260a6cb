"""`config/corpora.yaml`: what a person may write there, and what an error tells them."""

from pathlib import Path

import pytest

from judgeline.io import language_code
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.paths import ROOT
from resources.corpora.reading import read_corpus
from resources.suggest import unknown_name


@pytest.fixture
def load(tmp_path: Path):
    def loaded(text: str) -> dict[str, CorpusDefinition]:
        path = tmp_path / "corpora.yaml"
        path.write_text(text, encoding="utf-8")
        return load_corpora(path)

    return loaded


def test_a_corpus_is_read_with_its_defaults(load) -> None:
    tiny = load("tiny:\n  display_name: Tiny\n  reader: battles\n  location: x.csv\n")["tiny"]
    assert (tiny.slug, tiny.reader, tiny.location) == ("tiny", "battles", "x.csv")
    assert (tiny.sample_size, tiny.seed, tiny.judges, tiny.revision) == (None, 0, None, None)
    assert (tiny.rating.l2, tiny.rating.hard_outcome, tiny.rating.n_resamples) == (
        0.01,
        "derived",
        200,
    )
    assert (tiny.filters.languages, tiny.filters.single_turn) == (None, False)


def test_filters_take_names_and_codes_of_languages(load) -> None:
    text = "t:\n  display_name: T\n  reader: battles\n  filters: {languages: [German, en]}\n"
    assert load(text)["t"].filters.languages == ["de", "en"]


def test_the_shipped_file_loads_without_any_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGELINE_DATA", "SOFTELO_ANNOTATIONS", "LMARENA_100K_REVISION"):
        monkeypatch.delenv(name, raising=False)
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
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


@pytest.mark.parametrize("slug", ["lmarena-100k", "lmarena-140k", "lmarena-55k", "comparia"])
def test_a_hub_corpus_without_revision_says_how_to_pin(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LMARENA_100K", "LMARENA_140K", "LMARENA_55K", "COMPARIA"):
        monkeypatch.delenv(f"{name}_REVISION", raising=False)
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
    with pytest.raises(ValueError, match=rf"'{slug}' .* has no revision.* copy the commit's hash"):
        read_corpus(corpora[slug])


def test_a_variable_without_value_is_an_error_when_the_corpus_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOFTELO_ANNOTATIONS", raising=False)
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
    with pytest.raises(ValueError, match="SOFTELO_ANNOTATIONS, which is not set; set it"):
        read_corpus(corpora["softelo-annotations"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "data/x.csv"), ("", "data/x.csv"), ("/else", "/else/x.csv")],
)
def test_variables_have_defaults(value, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_FOLDER", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_FOLDER", value)
    one = CorpusDefinition(
        slug="t", display_name="T", reader="battles", location="${SOME_FOLDER:-data}/x.csv"
    )
    assert one.location == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no corpora"),
        ("- a\n", "holds no corpora"),
        ("a: [\n", "not valid YAML"),
        ("a: 3\n", "line 1, corpus 'a': found 3; expected display_name"),
        ("1: {}\n", "corpus 1: the slug is no text; put it in quotes"),
        ("a:\n  display_name: A\n", "line 1, corpus 'a', key 'reader': it is missing"),
        (
            "a:\n  display_name: A\n  reader: lmarena100k\n",
            "line 3, corpus 'a', key 'reader': .*did you mean 'lmarena-100k'",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  sample_sise: 3\n",
            "line 4, corpus 'a', key 'sample_sise': it is unknown; did you mean 'sample_size'",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  rating:\n    sead: 1\n",
            "line 5, corpus 'a', key 'rating.sead': it is unknown; did you mean 'seed'",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  rating: {miscoverage: 1.5}\n",
            "key 'rating.miscoverage': found 1.5: .*less than 1; correct it",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  filters: {languages: [Klingonese]}\n",
            "key 'filters.languages': .*'Klingonese' is no language; write its ISO",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  filters: {languages: []}\n",
            "keeps nothing; remove the key",
        ),
        (
            "A B:\n  display_name: A\n  reader: battles\n",
            "'A B' is no slug; use lower-case letters",
        ),
        ("a:\n  slug: a\n  display_name: A\n  reader: battles\n", "remove the key 'slug'"),
        (
            "a:\n  display_name: A\n  reader: battles\na:\n  reader: arena\n",
            "line 4: the key 'a' is there already, in line 1",
        ),
        (
            "a:\n  display_name: A\n  reader: battles\n  arena: {n_battles: 3}\n",
            "options under 'arena' need 'reader: arena'",
        ),
        ("a: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_a_mistake_is_told_with_file_place_and_remedy(load, text, told) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        load(text)
    assert "corpora.yaml" in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_every_mistake_of_a_corpus_is_told_at_once(load) -> None:
    with pytest.raises(ValueError, match=r"'reader'.*\n.*'seed'"):
        load("a:\n  display_name: A\n  seed: -1\n")


def test_a_corpus_without_a_display_name_is_called_by_its_slug(load) -> None:
    assert load("a:\n  reader: battles\n")["a"].display_name == "a"


def test_options_that_are_null_are_options_left_out(load) -> None:
    assert load("a:\n  reader: battles\n  arena_hard: null\n")["a"].arena_hard is None
    for other in ("reader: arena-hard\n  arena_hard: null", "reader: battles\n  arena_hard: {}"):
        with pytest.raises(ValueError, match="'arena_hard' go together"):
            load(f"a:\n  {other}\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"nowhere\.yaml; create it, or set JUDGELINE_CONFIG"
    ):
        load_corpora(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("published", "code"),
    [
        ("English", "en"),
        ("Norwegian Nynorsk", "nn"),
        ("SCOTS_GAELIC", "gd"),
        ("Farsi", "fa"),
        ("scots", "sco"),
        ("de", "de"),
        ("zh-Hant", "zh"),
        ("pt_BR", "pt"),
        ("iw", "he"),
        ("yue", "yue"),
        ("unknown", None),
        ("und", None),
        ("un", None),
        ("", None),
        (None, None),
        (float("nan"), None),
        ("Middle Elvish", None),
    ],
)
def test_languages(published, code) -> None:
    assert language_code(published) == code


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
