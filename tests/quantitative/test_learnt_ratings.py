"""A corpus of people's ratings or rankings of answers: one table, learnt as in a notebook."""

from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

import judgeline
from assets.quantitative.ratings import learnt_ratings
from judgeline.cli import main
from judgeline.judges.embeddings.embedder import open_embedder
from pipelines.commands.run import run_lineage
from resources.config.catalog import Catalog
from resources.config.corpora import load_corpora
from resources.stores import StoredEmbeddings
from resources.tables.store import ParquetTables

REASONS = ["clear, short", "wrong in line two", "clear, long", "vague", "off the point"]
N = 180


@pytest.fixture
def rated() -> pd.DataFrame:
    """Answers that people rate by what the reason says, and the judge at random."""
    rng = np.random.default_rng(6)
    kind = rng.integers(0, len(REASONS), N)
    table = pd.DataFrame(
        {
            "question_id": [f"q{i // 3}" for i in range(N)],
            "text": [REASONS[i] for i in kind],
            "judge_score": rng.integers(1, 6, N),
            "human_rating": (kind + 1).astype(float),
        }
    )
    table.loc[[3, 4], "human_rating"] = np.nan
    table.loc[5, "text"] = None
    return table


@pytest.fixture
def ranked(rated: pd.DataFrame) -> pd.DataFrame:
    places = rated["text"].fillna("").map([*REASONS, ""].index) + rated.index % 3 / 10
    ranks = places.groupby(rated["question_id"]).rank()
    sets = rated.drop(columns="human_rating").assign(ranking_id=rated["question_id"])
    return sets.assign(human_rank=ranks, text=rated["text"].fillna("vague"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    return tmp_path


def corpus(home: Path, **keys: object) -> Catalog:
    own = {"reader": "ratings", "location": str(home / "rated.*"), "embeddings": "hashed"}
    return catalog_of(home, corpora={"c": {**own, **keys}})


def made(home: Path, catalog: Catalog) -> dg.MaterializeResult[pd.DataFrame]:
    context = dg.build_asset_context(partition_key="c")
    result: dg.MaterializeResult[pd.DataFrame] = learnt_ratings(
        context, catalog, StoredEmbeddings(uri=str(home / "vectors"))
    )
    return result


def embedded(table: pd.DataFrame) -> pd.DataFrame:
    embedder = open_embedder(Catalog().embedder("hashed"))
    texts = [*dict.fromkeys(table["text"].dropna())]
    vectors = {texts[place]: made[0] for place, made in embedder.embed(texts)}
    return table.assign(embedding=[vectors.get(text) for text in table["text"]])


@pytest.mark.parametrize(("name", "methods"), [("rated", ["ls"]), ("ranked", ["pl"])])
def test_the_lineage_learns_what_a_notebook_learns(name, methods, home, request) -> None:
    table = request.getfixturevalue(name)
    table.to_csv(home / "rated.csv", index=False)
    result = made(home, corpus(home))
    expected = judgeline.learn_ratings(embedded(table)).predictions
    assert list(expected) == methods
    assert result.value[methods].equals(expected)
    assert result.value[[m for m in ("ls", "mn", "pl") if m not in methods]].isna().all(axis=None)
    assert result.value["row"].tolist() == list(range(N))
    assert result.value["judge_score"].tolist() == table["judge_score"].tolist()
    assert result.metadata["n_without_vector"] == table["text"].isna().sum()


def test_log_probabilities_and_vectors_in_the_file_are_taken(rated, home) -> None:
    table = embedded(rated).drop(columns="text")
    chances = np.random.default_rng(1).dirichlet(np.ones(5), N)
    table[[f"log_p_{i}" for i in range(1, 6)]] = np.log(chances)
    table.to_parquet(home / "rated.parquet")
    expected = judgeline.learn_ratings(table).predictions
    assert made(home, corpus(home, embeddings=None)).value[["ls", "mn"]].equals(expected)


@pytest.mark.parametrize(
    ("columns", "embeddings", "words"),
    [
        ({"text": "reason"}, "hashed", "no column 'text'"),
        ({"judge_score": "score"}, "hashed", "lacks judge_score for reader 'ratings'"),
        ({}, None, "corpus 'c' names no 'embeddings'"),
    ],
)
def test_what_is_missing_is_named(columns, embeddings, words, rated, home) -> None:
    rated.rename(columns=columns).to_csv(home / "rated.csv", index=False)
    with pytest.raises(ValueError, match=words):
        made(home, corpus(home, embeddings=embeddings))


def test_a_run_makes_the_one_table_until_the_file_changes(rated, home) -> None:
    tables, outcomes = ParquetTables(base_uri=str(home / "tables")), []
    with dg.instance_for_test() as instance:
        for change, is_dry in ((0, True), (0, False), (0, False), (1, False)):
            scores = rated["judge_score"] + change
            rated.assign(judge_score=scores).to_csv(home / "rated.csv", index=False)
            how = {"instance": instance, "catalog": corpus(home), "tables": tables}
            outcomes.append(run_lineage(corpus="c", dry_run=is_dry, **how))
    assert [one.exit_code for one in outcomes] == [0, 0, 0, 0]
    counts = [(len(one.made), len(one.up_to_date)) for one in outcomes]
    assert counts == [(0, 0), (1, 0), (0, 1), (1, 0)]
    assert (outcomes[0].n_texts, outcomes[0].plan) == (len(rated), ())  # nobody is asked
    assert outcomes[0].intention == f"Would learn from {len(rated)} rated texts of c."


def test_a_key_about_battles_is_refused(home) -> None:
    (home / "corpora.yaml").write_text("c: {reader: ratings, location: x, sample_size: 5}")
    with pytest.raises(ValueError, match=r"'sample_size' is about battles.*remove it"):
        load_corpora(home / "corpora.yaml")


def test_a_corpus_of_battles_has_no_rows_and_says_why(home) -> None:
    catalog = catalog_of(home, corpora="c: {reader: arena}")
    result = made(home, catalog)
    assert result.value.empty
    assert "reader: ratings" in str(result.metadata["note"])


def test_the_doctor_names_the_way(rated, home, capsys) -> None:
    file = home / "rated.csv"
    rated.to_csv(file, index=False)
    assert main(["doctor", str(file)]) == 2  # no ratings of models
    said = " ".join(capsys.readouterr().out.split())
    assert f"judgeline corpora add NAME --set reader=ratings --set location={file}" in said
    assert "LS and MN, or Plackett-Luce" in said
