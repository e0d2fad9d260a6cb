"""Tables of the TrustJudge paper: a slow twin, judges whose ratios follow from their rule."""

import json
import math
from collections.abc import Callable
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from papers.reproduce import reproduce
from papers.trustjudge_data import read

Cells = dict[tuple[str, str, str], float]
MODELS = tuple("abcdef")
SCALES = (5, 10, 100)


def cells_of(folder: Path | None) -> pd.DataFrame:
    made = pd.concat([table.cells for table in reproduce("trustjudge", folder)])
    assert not made.duplicated(["item", "row", "column"]).any()
    return made


def by_name(folder: Path | None) -> Cells:
    made = cells_of(folder).dropna(subset="value")
    return {
        (item.removeprefix("trustjudge."), row, column): value
        for item, row, column, value in made[["item", "row", "column", "value"]].to_numpy()
    }


def write_judge(
    folder: Path, *, noise: float, bias: float = 0.0, tie: float = 0.3, n: int = 40
) -> None:
    """A judge of qualities on 1 to 5, that says the likeliest number and prefers the first."""
    rng, doubts = np.random.default_rng(7), np.random.default_rng(8)
    scores, compared = [], []
    for k in range(n):
        question = {"question_id": f"q{k}", "category": ("math", "Coding")[k % 2]}
        quality = dict(zip(MODELS, rng.uniform(1, 5, len(MODELS)), strict=True))
        for (model, true), scale in product(quality.items(), SCALES):
            points = np.arange(1, scale + 1)
            centre = 1 + (true - 1) / 4 * (scale - 1)
            weight = np.exp(-0.5 * ((points - centre) / (0.1 * scale)) ** 2)
            other = doubts.uniform(1, scale)  # a second thought, so that no two scores agree
            weight += 0.5 * np.exp(-0.5 * ((points - other) / (0.1 * scale)) ** 2)
            chance = doubts.uniform(0.8, 0.99) * weight / weight.sum()
            said = int(points[chance.argmax()])
            listed = {str(p): c for p, c in zip(points, chance, strict=True) if c > 1e-9}
            reference = int(np.clip(round(centre), 1, scale))
            row = {"model": model, "scale": scale, "score": said, "reference_score": reference}
            scores.append({**question, **row, "probabilities": json.dumps(listed)})
        for (a, x), (b, y) in combinations(quality.items(), 2):
            if rng.random() < 0.5:
                (a, x), (b, y) = (b, y), (a, x)
            vote = {"human_outcome": 1.0 if x > y else 0.0}
            for order, favour in (("AB", bias), ("BA", -bias)):
                gap = x - y + favour + noise * rng.normal()
                p = np.exp([gap, tie, -gap])
                p /= p.sum()
                choice = (1.0, 0.5, 0.0)[int(p.argmax())]
                compared.append({**question, **vote, "model_a": a, "model_b": b, "order": order,
                                 "choice": choice, "p_a": p[0], "p_tie": p[1], "p_b": p[2],
                                 "perplexity": 1 + rng.random()})  # fmt: skip
    pd.DataFrame(scores).to_csv(folder / "scores.csv", index=False)
    pd.DataFrame(compared).to_csv(folder / "comparisons.csv", index=False)


# ------------------------------------------------------------------ the slow twin


def broken(beats: Callable[[str, str], float], answers: tuple[str, ...], *, mixed: bool) -> bool:
    """Whether some three answers break a rule, each tried in all orders."""
    for x, y, z in (p for three in combinations(answers, 3) for p in permutations(three)):
        xy, yz, xz = beats(x, y), beats(y, z), beats(x, z)
        if (xy, yz, xz) == (1, 1, 0) or (xy == yz == 0.5 != xz):
            return True
        if mixed and ((xy, yz, xz) == (1, 1, 0.5) or (xy, yz, xz) == (1, 0.5, 0)):
            return True
    return False


class Twin:
    """Ratios of one file by loops over its rows, as METHODS.md words them."""

    def __init__(self, folder: Path) -> None:
        self.scores = pd.read_csv(folder / "scores.csv")
        self.pairs: dict[tuple, dict[str, dict]] = {}
        for row in pd.read_csv(folder / "comparisons.csv").to_dict("records"):
            key = (row["question_id"], row["model_a"], row["model_b"])
            self.pairs.setdefault(key, {})[row["order"]] = row

    def outcome(self, key: tuple, rule: str, delta: float) -> float:
        ab, ba = self.pairs[key]["AB"], self.pairs[key]["BA"]
        if rule == "baseline":
            return ab["choice"] if ab["choice"] == ba["choice"] else 0.5
        if rule == "ppl":
            gap = ab["perplexity"] - ba["perplexity"]
            return 0.5 if abs(gap) <= delta else (ab if gap < 0 else ba)["choice"]
        mass = {share: ab[p] + ba[p] for share, p in ((1.0, "p_a"), (0.5, "p_tie"), (0.0, "p_b"))}
        low, high = sorted(mass.values())[1:]
        return 0.5 if high - low < 2 * delta else max(mass, key=mass.__getitem__)

    def ntr(self, size: int, rule: str, delta: float, *, mixed: bool = True) -> float:
        shares = {key: self.outcome(key, rule, delta) for key in self.pairs}
        shares |= {(q, b, a): 1 - share for (q, a, b), share in shares.items()}
        questions = {q for q, _, _ in shares}
        bad = [
            broken(lambda x, y, q=q: shares[q, x, y], own, mixed=mixed)
            for q in questions
            for own in combinations(MODELS, size)
        ]
        return 100 * sum(bad) / len(bad)

    def points(self, row: dict, method: str) -> float:
        scale, listed = row["scale"], json.loads(row["probabilities"])
        pairs = [(int(value), p) for value, p in listed.items()]
        if method == "baseline":
            value = row["score"]
        elif method == "softmax":
            weights = [(p / (1 - p)) ** 5 for _, p in pairs]  # exp(logit / 0.2)
            value = sum(v * w for (v, _), w in zip(pairs, weights, strict=True)) / sum(weights)
        else:
            value = sum(v * p for v, p in pairs)
            value /= sum(p for _, p in pairs) if method == "expectation" else 1
        return 1 + (value - 1) / (scale - 1) * 4

    def cr(self, method, scale, delta, questions=None, rule="baseline") -> float:
        own = self.scores[self.scores["scale"].eq(scale)].to_dict("records")
        points = {(row["question_id"], row["model"]): self.points(row, method) for row in own}
        wrong = []
        for q, a, b in self.pairs:
            if questions is None or q in questions:
                gap = points[q, a] - points[q, b]
                side = 0.5 if abs(gap) <= max(delta, 1e-9) else float(gap > 0)
                wrong.append(side != self.outcome((q, a, b), rule, 0))
        return 100 * sum(wrong) / len(wrong)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judge")
    write_judge(path, noise=0.7, bias=0.4)
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> Cells:
    return by_name(folder)


@pytest.mark.parametrize("rule", ["baseline", "likelihood", "ppl"])
@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_non_transitivity_is_that_of_the_twin(folder: Path, found: Cells, rule, delta) -> None:
    twin = Twin(folder)
    for size, (kind, mixed) in product((3, 4, 5), (("ntr", True), ("narrow_ntr", False))):
        cell = found["fig3", "the judge", f"{kind}{size}_{rule} at tolerance {delta:g}"]
        assert cell == pytest.approx(twin.ntr(size, rule, delta, mixed=mixed))
        assert 0 < cell < 100
        if delta == 0:
            assert found["table1", "the judge", f"{kind}{size}_{rule}"] == cell


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", ["baseline", "geval", "expectation", "softmax"])
def test_conflicts_are_those_of_the_twin(folder: Path, found: Cells, method, scale) -> None:
    twin = Twin(folder)
    for delta in (0.0, 0.2, 1.0):
        for rule, end in (("baseline", ""), ("likelihood", "_by_likelihood")):
            column = f"cr_{method}{end} at tolerance {delta:g}"
            cell = found["fig3", f"the judge, 1 to {scale}", column]
            assert cell == pytest.approx(twin.cr(method, scale, delta, rule=rule))


def test_printed_columns_hold_the_numbers_of_their_definition(folder: Path, found: Cells) -> None:
    twin = Twin(folder)
    for column, (method, scale) in {
        "cr_baseline": ("baseline", 5),
        "cr_geval": ("geval", 5),
        "cr_trustjudge": ("softmax", 100),
        "cr_expectation_100": ("expectation", 100),
    }.items():
        cell = found["table1", "the judge", column]
        assert cell == pytest.approx(twin.cr(method, scale, 0))
    part = found["table2", "single: + softmax", "the judge"]
    assert part == pytest.approx(twin.cr("softmax", 5, 0))
    maths = {f"q{k}" for k in range(0, 40, 2)}
    for column, method in (("cr_trustjudge", "softmax"), ("cr_expectation", "expectation")):
        cell = found["table6", "Math / the judge", column]
        assert cell == pytest.approx(twin.cr(method, 5, 0, maths))
    ratios = [twin.cr(method, 100, 0) for method in ("geval", "expectation", "softmax")]
    assert len({*ratios, twin.cr("baseline", 5, 0)}) == 4  # so that none can stand for another
    assert ("table5", "the judge", "cr_baseline") not in found  # of one dimension


def test_accuracy_against_votes_and_references(folder: Path, found: Cells) -> None:
    twin = Twin(folder)
    votes = {key: both["AB"]["human_outcome"] for key, both in twin.pairs.items()}
    for column, rule in (("baseline", "baseline"), ("trustjudge", "likelihood")):
        right = [twin.outcome(key, rule, 0) == vote for key, vote in votes.items()]
        cell = found["table1", "the judge", f"exact_match_{column}"]
        assert cell == pytest.approx(100 * np.mean(right))
    nearer, match = [], []
    for row in twin.scores[twin.scores["scale"].eq(10)].to_dict("records"):
        gold = 1 + (row["reference_score"] - 1) / 9 * 4
        names = ("geval", "expectation", "softmax")
        off = {name: abs(twin.points(row, name) - gold) for name in names}
        nearer.append(off["softmax"] < off["geval"])
        match.append(off["expectation"] < 4 / 9 / 2)
    assert found["table1", "the judge", "winrate_vs_geval_10"] == pytest.approx(
        100 * np.mean(nearer)
    )
    row = ("table1", "the judge", "score_match_expectation_10")
    assert found[row] == pytest.approx(100 * np.mean(match))


# ------------------------------------------------------------------ forms of the same data


def test_bits_of_a_judge_that_is_sure_or_torn(tmp_path: Path) -> None:
    """Four answers, two at each number, torn between two numbers or sure of one."""
    torn, sure = json.dumps({"2": 0.4, "3": 0.4}), json.dumps({"4": 0.8})
    rows = zip("abcd", (2, 2, 4, 4), (torn, torn, sure, sure), strict=True)
    table = pd.DataFrame(rows, columns=["model", "score", "probabilities"])
    table.assign(question_id="q", scale=5).to_json(
        tmp_path / "scores.jsonl", orient="records", lines=True
    )
    found = by_name(tmp_path)
    row = ("information", "the judge, 1 to 5")
    assert found[*row, "entropy"] == pytest.approx(0.5)
    assert found[*row, "covered"] == pytest.approx(0.8)
    assert found[*row, "bits baseline"] == pytest.approx(1.0)


def test_scores_that_differ_by_rounding_alone_are_equal(tmp_path: Path) -> None:
    """Two distributions of mean 1.4, whose sums are unequal floats: a tie is no conflict."""
    chances = {"m": {"1": 0.7, "2": 0.2, "3": 0.1}, "n": {"1": 0.6, "2": 0.4}}
    sums = [sum(int(v) * p for v, p in own.items()) for own in chances.values()]
    assert sums[0] != sums[1] == pytest.approx(sums[0], abs=1e-12)
    rows = [
        {"question_id": "q", "model": m, "scale": 5, "score": 1, "reference_score": 2,
         "probabilities": json.dumps(own)}
        for m, own in chances.items()
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    pair = {"question_id": "q", "model_a": "m", "model_b": "n", "choice": 0.5}
    pd.DataFrame([pair | {"order": "AB"}, pair | {"order": "BA"}]).to_csv(
        tmp_path / "comparisons.csv", index=False
    )
    found = by_name(tmp_path)
    for name in ("cr_geval", "cr_trustjudge", "cr_expectation_5"):
        assert found.get(("table1", "the judge", name), 0.0) == 0
    assert found["table1", "the judge", "winrate_vs_geval_5"] == 0  # 1.4 is nearer to 2


def test_scores_as_near_to_the_reference_win_half(tmp_path: Path) -> None:
    """Of two equally likely numbers the softmax keeps the mean."""
    rows = [
        {"question_id": "q", "model": m, "scale": 5, "score": 1, "reference_score": gold,
         "probabilities": json.dumps({"1": 0.5, "4": 0.5})}
        for m, gold in (("m", 2), ("n", 3))
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    assert by_name(tmp_path)["table1", "the judge", "winrate_vs_geval_5"] == 50


def test_a_question_of_two_categories_counts_in_both(folder: Path, tmp_path: Path) -> None:
    for name in ("scores", "comparisons"):
        table = pd.read_csv(folder / f"{name}.csv")
        kinds = table["category"].replace("math", "math; Coding;math")
        table.assign(category=kinds).to_csv(tmp_path / f"{name}.csv", index=False)
    [judge] = read(tmp_path, print)
    sizes = {category: len(own.pairs) for category, own in judge.by("category")}
    assert sizes == {"Coding": len(judge.pairs), "math": len(judge.pairs) // 2}
    assert [name for name, _ in judge.by("dimension")] == ["all"]


def test_sides_rows_judges_and_dimensions(folder: Path, found: Cells, tmp_path: Path) -> None:
    """Sides exchanged and rows shuffled change nothing; two dimensions have the mean of both."""
    scores, compared = (pd.read_csv(folder / f"{name}.csv") for name in ("scores", "comparisons"))
    own = {"model_a": "model_b", "model_b": "model_a", "p_a": "p_b", "p_b": "p_a"}
    turned = compared.rename(columns=own).assign(
        order=compared["order"].map({"AB": "BA", "BA": "AB"}),
        choice=1 - compared["choice"],
        human_outcome=1 - compared["human_outcome"],
    )
    turned = turned.sample(frac=1, random_state=1).assign(judge="GPT-4o-mini")
    named = compared.assign(judge="meta-llama/Llama-3.1-70B-Instruct")
    half = named[named["question_id"].str.len().eq(2)]  # q0 to q9
    by_aspect = [named.assign(dimension="style"), half.assign(dimension="truth")]
    pd.concat([turned, *by_aspect]).to_parquet(tmp_path / "comparisons.parquet")
    listed = scores.assign(probabilities=scores["probabilities"].map(json.loads))
    pd.concat([listed.assign(judge="GPT-4o-mini")]).to_json(tmp_path / "scores.json")
    both = by_name(tmp_path)
    for (item, row, column), value in found.items():
        if item in ("table1", "fig3", "information") and row.startswith("the judge"):
            name = row.replace("the judge", "GPT-4o-mini")
            assert both[item, name, column] == pytest.approx(value), (item, column)
    cells = cells_of(tmp_path).set_index(["item", "row", "column"])
    compared_rows = {row for _, row, _ in cells.index[cells["within"].notna()]}
    assert "Llama-3.1-70B-Instruct" in compared_rows
    assert "GPT-4o" not in compared_rows
    whole = found["table1", "the judge", "ntr4_likelihood"]
    twin = Twin(folder)
    twin.pairs = {key: pair for key, pair in twin.pairs.items() if len(key[0]) == 2}
    mean = (whole + twin.ntr(4, "likelihood", 0)) / 2
    assert both["table5", "Llama-3.1-70B-Instruct", "ntr4_trustjudge"] == pytest.approx(mean)


def test_printed_examples_are_those_of_hand() -> None:
    cells = cells_of(None)
    score = cells[cells["row"].eq("score of the example")].set_index("column")["value"]
    p = {4: 0.3775228458971041, 3: 0.6224299462058022, 2: 4.659003155833513e-05}
    p[5] = 5.175684992981448e-07
    plain = sum(value * share for value, share in p.items())
    assert score["geval"] == pytest.approx(plain, abs=1e-12)
    assert score["expectation"] == pytest.approx(plain / sum(p.values()), abs=1e-12)
    assert score["entropy"] == pytest.approx(-sum(s * math.log2(s) for s in p.values()), abs=1e-5)
    assert cells.loc[cells["item"].eq("trustjudge.fig5"), "within"].isna().all()  # above 1


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("file", "column", "value", "message"),
    [
        (
            "comparisons",
            "choice",
            2,
            r"choice is 2.0 in row 0 \(1200 such rows\); expected A's share",
        ),
        ("comparisons", "order", "A", "order is 'A' in row 0 .*expected AB or BA"),
        ("comparisons", "p_tie", 0.9, "p_a is .* in row 0 .*that add up to 1"),
        ("comparisons", "perplexity", 0.5, "perplexity is 0.5 in row 0 .*expected 1 or more"),
        ("comparisons", "model_b", "a", "model_b is 'a' in row .*expected another model"),
        ("comparisons", "order", "AB", "row 1 .*is there already: judge the judge, .*, order .."),
        ("scores", "score", "good", "score is 'good' in row 0 .*expected a whole number from 1"),
        ("scores", "score", 0, "score is 0.0 in row 0"),
        ("scores", "scale", None, "scale is nan in row 0"),
        ("scores", "scale", 1e12, "scale is 1000000000000.0 in row 0 .*from 2 to 1000"),
        ("scores", "probabilities", "[0.1]", r"row 0: probabilities '\[0.1\]' cannot be read"),
        ("scores", "probabilities", '{"3": 1.5}', "row 0: probabilities .*1.5.* cannot be read"),
        ("scores", "probabilities", '{"3": 0}', "row 0: probabilities .* cannot be read"),
        ("scores", "model", "a", "row 3 .*is there already: judge the judge, .*, model a, scale 5"),
        ("scores", "probabilities", "3: 0.4", "row 0: probabilities '3: 0.4' cannot be read"),
        ("scores", "probabilities", '{"3": 0.9, "4": 0.4}', "add up to 1.3 > 1"),
        ("scores", "probabilities", '{"3": -0.1}', "row 0: probabilities .* cannot be read"),
        ("scores", "probabilities", '{"A": 0.9}', "no whole number from 1 to 5 among the tokens"),
    ],
)
def test_bad_values_are_named(folder: Path, tmp_path: Path, file, column, value, message) -> None:
    for name in ("scores", "comparisons"):
        table = pd.read_csv(folder / f"{name}.csv")
        if name == file:
            table[column] = value
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(ValueError, match=message) as caught:
        list(reproduce("trustjudge", tmp_path))
    assert f"{file}.csv" in str(caught.value)


def test_rows_of_a_pair_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    rows = [("q", "a", "b", "AB", 1, 1, "craft"), ("q", "b", "a", "AB", 0, 0, None)]
    columns = ["question_id", "model_a", "model_b", "order", "choice", "human_outcome", "category"]
    for name, value, text in (("human_outcome", 1, "1.0"), ("category", "code", "'code'")):
        table = pd.DataFrame(rows, columns=columns)
        table.to_csv(tmp_path / "comparisons.csv", index=False)
        assert read(tmp_path, print)[0].pairs["category"].tolist() == ["craft"]
        table.loc[1, name] = value
        table.to_csv(tmp_path / "comparisons.csv", index=False)
        wanted = f"comparisons.csv: {name} is {text} in row 1 .*expected what the other order"
        with pytest.raises(ValueError, match=wanted):
            cells_of(tmp_path)


def test_missing_columns_and_two_files_are_named(folder: Path, tmp_path: Path) -> None:
    table = pd.read_csv(folder / "comparisons.csv").drop(columns="order")
    table.to_csv(tmp_path / "comparisons.csv", index=False)
    with pytest.raises(ValueError, match=r"comparisons.csv lacks order and has question_id, .*add"):
        list(reproduce("trustjudge", tmp_path))
    table.to_parquet(tmp_path / "comparisons.parquet")
    with pytest.raises(ValueError, match=r"holds comparisons.csv and comparisons.parquet; leave"):
        list(reproduce("trustjudge", tmp_path))
    (tmp_path / "comparisons.parquet").unlink()
    table.assign(order=["AB", "BA"] * (len(table) // 2)).to_csv(tmp_path / "comparisons.csv")
    scores = pd.read_csv(folder / "scores.csv").assign(dimension="style")
    scores.to_csv(tmp_path / "scores.csv")
    with pytest.raises(
        ValueError, match=r"compared all, q0, .*, scored style, q0, a and others, and no answer"
    ):
        list(reproduce("trustjudge", tmp_path))
