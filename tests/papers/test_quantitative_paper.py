"""Tables of the quantitative-judges paper: simulated judges, arithmetic, and broken files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from judgeline.cli import main
from judgeline.quantitative import Battles, Design, Labels
from papers import quantitative
from papers.quantitative import SCALES, Source, confusion, read
from papers.reproduce import reproduce

N, D = 450, 4
DATA, JUDGE = "HelpSteer2", "Llama"
SHORT = Design(sizes=[60, 200], n_sets=3, penalties=[1.0, 100.0])


@pytest.fixture(autouse=True)
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantitative, "DESIGN", SHORT)


def answers(seed: int = 0) -> pd.DataFrame:
    """Answers whose judge is two points too high; its rationales know what its scores do not."""
    rng = np.random.default_rng(seed)
    rationale, level = rng.normal(size=(N, D)), rng.normal(size=N)
    quality = level + rationale[:, 0] - rationale[:, 1]
    return pd.DataFrame(
        {
            "dataset": "helpsteer-2",
            "judge": JUDGE,
            "question_id": [f"q{i // 3}" for i in range(N)],
            "model": "m",
            "embedding": rationale.tolist(),
            "judge_score": np.clip(np.round(4 + level, 1), 1, None),
            "human_rating": np.clip(np.round(2 + quality), 0, 4),
            "quality": quality,
        }
    )


def ratings() -> pd.DataFrame:
    table = answers()
    chances = {f"log_p_{k}": -((table["judge_score"] - 2 - k) ** 2) for k in range(5)}
    sure = table.index == 0  # of a rating of 4: the other probabilities are 0 in floats
    chances = {name: np.where(sure, -800.0 * (name != "log_p_4"), p) for name, p in chances.items()}
    return table.assign(**chances).drop(columns="quality")


def pairs() -> pd.DataFrame:
    a, b = answers(), answers(1)
    rng = np.random.default_rng(2)
    first, second = np.array(a["embedding"].to_list()), np.array(b["embedding"].to_list())
    won = rng.random(N) < expit(2 * (a["quality"] - b["quality"]))
    return pd.DataFrame(
        {
            **{name: a[name] for name in ("judge", "question_id")},
            "dataset": "offset bias",
            "model_a": "x",
            "model_b": "y",
            "human_outcome": np.where(np.arange(N) % 9, np.where(won, 0.9, 0.0), 0.5),
            "embedding": (first - second).tolist(),
            "judge_probability": expit(a["judge_score"] - b["judge_score"]),
            "embedding_a": a["embedding"],
            "embedding_b": b["embedding"],
            "judge_score_a": a["judge_score"],
            "judge_score_b": b["judge_score"],
        }
    )


def rankings() -> pd.DataFrame:
    """Sets of three of one question, of which people ranked the best two."""
    table = answers()
    rank = table.groupby("question_id")["quality"].rank(ascending=False)
    own = {"ranking_id": table["question_id"], "human_rank": rank.where(rank < 3)}
    return pd.concat([table.assign(**own)] * 3, ignore_index=True).assign(
        ranking_id=lambda t: [f"r{i // 3}" for i in range(len(t))],
        question_id=lambda t: t["ranking_id"],
    )


TABLES = {"ratings": ratings, "pairs": pairs, "rankings": rankings}


def as_texts(table: pd.DataFrame) -> pd.DataFrame:
    lists = [name for name in table if str(name).startswith("embedding")]
    return table.assign(**{name: table[name].map(json.dumps) for name in lists})


def made_from(folder: Path) -> dict[str, pd.DataFrame]:
    found = reproduce("quantitative", folder)
    return {one.item.name.partition(".")[2]: one.cells for one in found}


def data_of(form: str) -> str:
    return "Offset Bias" if form.startswith("BTL") else DATA


def value(cells: pd.DataFrame, row: str, column: str) -> float:
    (found,) = cells.loc[cells["row"].eq(row) & cells["column"].eq(column), "value"]
    return float(found)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("quantitative")
    for kind, table in TABLES.items():
        table().to_parquet(folder / f"{kind}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantitative, "DESIGN", SHORT)
        return made_from(folder)


# ------------------------------------------------------------------ a user's labels


@pytest.mark.parametrize(
    ("table", "form", "metric", "sign"),
    [
        ("table1", "LS", "mse", -1),
        ("table1", "LS", "kendall", 1),
        ("table1", "MN", "accuracy", 1),
        ("table2", "BTL", "mse", -1),
        ("table2", "BTL", "f1", 1),
        ("table2", "BTL2", "pearson", 1),
        ("rankings", "PL", "kendall", 1),
        ("rankings", "PL", "log_loss", -1),
    ],
)
def test_judges_that_learnt_beat_their_base(made, table: str, form: str, metric, sign) -> None:
    column = f"{data_of(form)} / {metric}"
    base = value(made[table], f"{JUDGE} / Base", column)
    few, many = (value(made[table], f"{JUDGE} / {form} ({n})", column) for n in (60, 200))
    assert sign * many > sign * base
    assert sign * many > sign * few - 0.02
    full, bare, blind = (
        value(made["table8"], f"{form} / {part}", column)
        for part in ("Full", "No embedding", "No score")
    )
    assert full == many
    assert sign * full > max(sign * bare, sign * blind)


def test_base_judges_are_measured_as_they_are(made) -> None:
    table = ratings()
    wrong = table["judge_score"] - table["human_rating"]
    for column, expected in (("mae", wrong.abs().mean()), ("mse", (wrong**2).mean())):
        found = value(made["table1"], f"{JUDGE} / Base", f"{DATA} / {column}")
        assert found == pytest.approx(expected, rel=0.1)  # a third of the questions, three draws
    rows = set(made["table1"].dropna(subset="value")["row"])
    assert {f"{JUDGE} / Base of MN", f"{JUDGE} / MN (60)"} <= rows


def test_features_dropped_penalties_and_confusion(made) -> None:
    for table, form, metric in (("table6", "LS", "mse"), ("table7", "BTL2", "f1")):
        data = data_of(form)
        column = f"{data} / {form} / {metric}"
        rows = [value(made[table], f"{JUDGE} / dropped {share}%", column)
                for share in ("0", "50", "75", "87.5")]  # fmt: skip
        assert rows[0] == value(made["table8"], f"{form} / Full", f"{data} / {metric}")
        assert (rows[0] < rows[3]) == (metric == "mse")
        bare = value(made["table8"], f"{form} / No embedding", f"{data} / {metric}")
        # of four features none is left; predictions of one half, but for rounding, tip either way
        assert rows[3] == pytest.approx(bare, abs=1e-6 if form == "LS" else 0.01)
    losses = made["penalty"]
    assert set(losses["row"]) == {f"{JUDGE} / {form} (200)" for form in
                                  ("LS", "MN", "BTL", "BTL2", "PL")}  # fmt: skip
    row = f"{JUDGE} / LS (200)"
    small, large = (value(losses, row, f"{DATA} / loss at gamma={g}") for g in (1, 100))
    assert small < large
    noted = losses[losses["note"].ne("")]
    assert set(noted["note"]) == {"least of all, at an end of the penalties"}
    assert noted.loc[noted["row"].eq(row), "column"].tolist() == [f"{DATA} / loss at gamma=1"]
    nats = value(losses, f"{JUDGE} / BTL (200)", "Offset Bias / loss at gamma=1")
    assert 0.3 < nats < np.log(2)  # per battle
    assert small == pytest.approx(
        value(made["table1"], f"{JUDGE} / LS (200)", f"{DATA} / mse"), rel=0.25
    )
    counts = made["confusion"]
    for form, name in (("MN", "MN (200)"), ("MN", "Base of MN"), ("BTL", "BTL (200)")):
        table, row = made["table1" if form == "MN" else "table2"], name.removesuffix(" of MN")
        own = counts[counts["column"].str.contains(f"/ {form} /")]
        own = own[own["row"].str.startswith(f"{JUDGE} / {row} ")]
        assert own["value"].sum() == pytest.approx(1)
        right = own[own["row"].str[-1] == own["column"].str[-1]]["value"].sum()
        accuracy = value(table, f"{JUDGE} / {name}", f"{data_of(form)} / accuracy")
        assert right == pytest.approx(accuracy, abs=0.005)


def test_even_preferences_are_half_a_win_and_half_a_loss_in_confusion(tmp_path: Path) -> None:
    """A judge who knows nothing: half of either class is predicted right, as accuracy has it."""
    own = [name for name in pairs() if not str(name).endswith(("_a", "_b"))]
    pairs()[own].assign(judge_probability=0.5).to_parquet(tmp_path / "pairs.parquet")
    [source] = read(tmp_path, print)
    found = {(c.row, c.column): c.value for c in confusion(source)}
    for human in (0, 1):
        row = f"{JUDGE} / Base / human {human}"
        lost, won = (found[row, f"Offset Bias / BTL / predicted {side}"] for side in (0, 1))
        assert lost == won > 0


def test_printed_cells_stand_beside_those_of_the_same_names(made) -> None:
    cells = made["table1"].set_index(["row", "column"])
    assert cells.loc[(f"{JUDGE} / Base", f"{DATA} / mse"), "printed"] == 2.223
    assert cells["tolerance"].max() == 0.0005  # rounding alone
    assert cells.loc[("TRACT", f"{DATA} / mse"), "note"].startswith("needs ratings")
    within = made["table2"].set_index(["row", "column"])["within"]
    weighted = [f"Offset Bias / {metric}" for metric in ("precision", "recall", "f1")]
    assert (
        within.loc[[("Llama / BTL (200)", one) for one in weighted]].isna().all()
    )  # printed weighted by class
    assert within.loc[[("Llama / BTL2 (200)", one) for one in weighted]].notna().all()
    assert value(made["table3"], f"{DATA} / {JUDGE} / {D} features", "MN") == 5 * (D + 5 + 1)
    assert not made["table4"]["value"].notna().any()
    assert "GPU" in made["table4"]["note"].iloc[0]


def test_files_of_any_form_give_the_same_labels(tmp_path: Path) -> None:
    """CSV with lists as text, Parquet, and one column per number; both orders are one battle."""
    for kind, table in TABLES.items():
        as_texts(table()).to_csv(tmp_path / f"{kind}.csv", index=False)
    (first, *_), wide = read(tmp_path, print), ratings()
    vectors = np.array(wide.pop("embedding").to_list())
    wide = wide.assign(**{f"embedding_{k}": vectors[:, k] for k in reversed(range(D))})
    unlabelled = wide.head(5).assign(human_rating=None)
    (tmp_path / "wide").mkdir()
    pd.concat([unlabelled, wide], ignore_index=True).to_parquet(
        tmp_path / "wide" / "ratings.parquet"
    )
    second = read(tmp_path / "wide", print)[0]
    for name in ("embeddings", "scores", "target", "question"):
        assert getattr(first.task, name) == pytest.approx(getattr(second.task, name))
    half = pairs().drop(columns=["embedding_a", "embedding_b"])
    half = half.assign(order="AB", battle_id=half.index)
    turned = half.assign(order="BA", embedding=half["embedding"].map(lambda v: [-x for x in v]))
    (tmp_path / "both").mkdir()
    pd.concat([half, turned]).to_parquet(tmp_path / "both" / "pairs.parquet")
    (both,) = read(tmp_path / "both", print)
    assert isinstance(both.task, Battles)
    assert (both.task.human.size, both.task.weights.tolist()) == (N, [0.5] * 2 * N)
    logit = np.log(half["judge_probability"] / (1 - half["judge_probability"]))
    assert both.task.shown.base == pytest.approx([*logit, *-logit])
    assert both.task.base == pytest.approx(half["judge_probability"])


def test_a_split_says_what_is_tested(tmp_path: Path) -> None:
    split = np.where(np.arange(N) < 300, "train", "test")
    ratings().assign(split=split).to_parquet(tmp_path / "ratings.parquet")
    source = read(tmp_path, print)[0]
    assert isinstance(source, Source)
    assert isinstance(source.task, Labels)
    assert set(source.curve.n_test) == {150.0}


def test_ratings_of_many_values_have_no_confusion_matrix(tmp_path: Path) -> None:
    """The file is packed: its name before the dot is what counts."""
    rating = np.random.default_rng(5).permutation(N) / 10
    table = answers().assign(human_rating=rating).drop(columns="quality")
    as_texts(table).to_csv(tmp_path / "ratings.csv.gz", index=False)
    found = {one.item.name.partition(".")[2]: one for one in reproduce("quantitative", tmp_path)}
    assert found["table1"].is_made
    assert not found["confusion"].is_made
    assert "no cell made: 450 distinct ratings, at most 20 in a" in found["confusion"].line


def test_too_few_labels_leave_a_row_that_says_so(tmp_path: Path) -> None:
    ratings().head(60).to_parquet(tmp_path / "ratings.parquet")
    table1 = next(reproduce("quantitative", tmp_path))
    assert "; no cell made: 39 votes on questions that are not" in table1.line
    table = table1.cells.set_index(["row", "column"])
    note = table.loc[(f"{JUDGE} / LS", f"{DATA} / accuracy"), "note"]
    assert note.startswith("39 votes on questions that are not tested on cannot fill")


# ------------------------------------------------------------------ arithmetic


def test_parameters_need_no_data() -> None:
    found = {one.item.name: one for one in reproduce("quantitative")}
    assert {name for name, one in found.items() if one.is_made} == {"quantitative.table3"}
    parameters = found["quantitative.table3"].cells
    assert parameters["within"].tolist() == [True] * 10
    for name, scale in SCALES.items():
        assert value(parameters, name, "MN") == scale * (4096 + scale + 1)


# ------------------------------------------------------------------ broken files


def with_(**changed: object):
    return lambda table: table.assign(**changed)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("ratings", lambda t: t.drop(columns="human_rating"), "lacks human_rating and has .* add"),
        ("ratings", with_(judge_score="high"), "judge_score is 'high' in row 0"),
        ("ratings", with_(embedding="gone"), "embedding is .*gone.* in row 0"),
        ("ratings", with_(human_rating=2.5), "Llama of helpsteer-2: label is 2.5"),
        ("ratings", with_(split="dev"), "split is 'dev' in row 0 .*; expected train"),
        ("ratings", with_(split="train"), "Llama of .*: split is test in no row .*;"),
        ("ratings", with_(question_id=None), "question_id is nan in row 0 .* expected a name"),
        ("pairs", with_(order="both"), "order is 'both' in row 0 .*; expected AB or BA"),
        ("pairs", with_(human_outcome=3.0), "human_outcome is 3.0 in row 0 .*; expected"),
        ("pairs", with_(judge_probability=1.0), "probability is 1 in row 0; expected"),
        ("rankings", lambda t: t.iloc[1:], "ranking 'r0' has 2 alternatives, most have 3"),
        ("rankings", with_(human_rank=1), "ranking 'r0' has a human_rank twice"),
    ],
)
def test_broken_files_name_file_value_and_remedy(tmp_path: Path, kind, change, message) -> None:
    path = tmp_path / f"{kind}.csv"
    as_texts(change(TABLES[kind]())).to_csv(path, index=False)
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        read(tmp_path, print)


def test_vectors_of_two_lengths_are_refused(tmp_path: Path, capsys) -> None:
    table = ratings()
    table["embedding"] = [*table["embedding"][:7], [1.0], *table["embedding"][8:]]
    table.to_parquet(tmp_path / "ratings.parquet")
    assert main(["paper", "quantitative", "--data", str(tmp_path)]) == 1
    assert "in row 7 (1 such rows); expected 4 numbers" in capsys.readouterr().err
