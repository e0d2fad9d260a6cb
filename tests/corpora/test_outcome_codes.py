"""Outcome codes of users' files: what is read, what is refused, and which option reads it."""

import math
from pathlib import Path

import pandas as pd
import pytest

from judgeline.cli import COULD_NOT_RUN, main
from judgeline.io import parse_codes, read_files, read_judged_battles
from judgeline.io.outcome_codes import outcomes_by_code, outcomes_by_winner
from resources.config.corpora import CorpusDefinition
from resources.corpora.locations import content_revision
from resources.corpora.reading import CorpusRead, read_corpus

Codes = tuple[str, str, str]
"""Of a win of A, a win of B and a tie; an empty one is no vote."""

USUAL: Codes = ("1", "0", "0.5")
CODINGS: list[tuple[Codes, str]] = [
    (("1", "-1", "0"), "1/-1/0"),
    (("1.0", "-1.0", "0.0"), "1/-1/0"),
    (("1", "2", "0"), "1/2/0 or 2/0/1 or 1/0/2"),
    (("2", "0", "1"), "1/2/0 or 2/0/1 or 1/0/2"),
    (("1", "2", ""), "1/2"),
    (("1", "2", "1.5"), "1/2/1.5"),
    (("1", "2", "3"), "1/2/3"),
    (("100", "0", "50"), "100/0/50"),
    (("1", "0", "tie"), "1/0/tie"),
    (("A", "B", "C"), "A/B/C"),
    (("x>y", "y>x", "x=y"), "such as 1/-1/0"),
]
WORDS = [("A", "B", "tie"), ("left", "right", "both_bad"), ("model_a", "model_b", "Tie (bothbad)")]


def column(codes: Codes, n: int = 40) -> list[str]:
    """Return n wins of A, n of B and half as many ties."""
    a, b, tie = codes
    return [a] * n + [b] * n + [tie] * (n // 2)


def write(path: Path, **columns: list[str]) -> Path:
    pd.DataFrame({"model_a": "ant", "model_b": "bee", **columns}).to_csv(path, index=False)
    return path


def corpus(path: Path, **options: object) -> CorpusRead:
    return read_corpus(
        CorpusDefinition(slug="mine", reader="battles", location=str(path), **options)
    )


def values(outcomes: pd.Series) -> list[str]:
    """Return the share of A in a win of A, a win of B and a tie, as text."""
    return [f"{share:g}" for share in outcomes.iloc[[0, 40, -1]]]


def read_as(codes: Codes) -> list[str]:
    return ["1", "0", "0.5" if codes[2] else "nan"]


@pytest.mark.parametrize(("codes", "stated"), CODINGS)
def test_ranked_files_of_another_coding(tmp_path: Path, codes: Codes, stated: str) -> None:
    both = {"human_outcome": column(codes), "judge_outcome": column((*codes[:2], codes[2] or "1"))}
    path = write(tmp_path / "scored.csv", **both, score_difference=[1.0] * 100)
    with pytest.raises(ValueError, match="human_outcome") as refused:
        read_judged_battles(path)
    assert str(refused.value).count("(40 rows)") == 2
    assert f"outcomes={stated} " in str(refused.value)
    scored = read_judged_battles(path, outcomes="/".join(filter(None, codes))).scored
    assert values(scored["human_outcome"]) == read_as(codes)
    assert values(scored["recorded_outcome"])[:2] == ["1", "0"]


@pytest.mark.parametrize("name", ["human_outcome", "winner"])
@pytest.mark.parametrize(("codes", "stated"), CODINGS)
def test_corpora_of_another_coding(tmp_path: Path, codes: Codes, stated: str, name: str) -> None:
    path = write(tmp_path / "battles.csv", **{name: column(codes)})
    with pytest.raises(ValueError, match=f"column {name}") as refused:
        corpus(path)
    assert str(refused.value).count("(40 rows)") == 2
    assert f"'outcomes: {stated}'" in str(refused.value)
    assert "corpora.yaml" in str(refused.value)
    read = corpus(path, outcomes="/".join(filter(None, codes)))
    assert values(read.battles["human_outcome"]) == read_as(codes)
    assert read.quarantine.empty


@pytest.mark.parametrize("codes", [*WORDS, ("ant", "bee", "bothbad")])
def test_names_of_the_winner_need_no_option(tmp_path: Path, codes: Codes) -> None:
    path = write(tmp_path / "x.csv", winner=column(codes), score_difference=[1.0] * 100)
    named = pd.read_csv(path).rename(columns={"winner": "human_outcome"})
    for read in (
        read_judged_battles(path).scored,
        read_judged_battles(named).scored,
        corpus(path).battles,
    ):
        assert values(read["human_outcome"]) == ["1", "0", "0.5"]


@pytest.mark.parametrize("codes", [("1", "0", "1"), USUAL, ("1.0", "0.0", ""), ("1", "0", "0.50")])
def test_the_usual_codes_need_no_option(tmp_path: Path, codes: Codes) -> None:
    outcomes = column(codes)
    path = write(tmp_path / "x.csv", human_outcome=outcomes, score_difference=[1.0] * 100)
    for read in (read_judged_battles(path).scored, corpus(path).battles):
        shares = [f"{float(code):g}" if code else "nan" for code in codes]
        assert values(read["human_outcome"]) == shares


def test_a_judge_of_another_coding_than_people_is_refused_with_every_option(tmp_path):
    """Read by one coding, the other column would call ties what are wins of B."""
    judge = column(("1", "-1", "0"))
    path = write(
        tmp_path / "x.csv",
        human_outcome=column(USUAL),
        judge_outcome=judge,
        score_difference=[1.0] * 100,
    )
    with pytest.raises(ValueError, match=r"judge_outcome holds.*'-1' \(40 rows\).*1/-1/0"):
        read_judged_battles(path)
    with pytest.raises(ValueError, match=r"human_outcome has no -1.*convert the column"):
        read_judged_battles(path, outcomes="1/-1/0")


@pytest.mark.parametrize(
    ("code", "n_rows", "is_refused"),
    [
        ("-1", 2, True),  # losses that are rare: then 0 is a tie
        ("-1", 1, False),
        ("tie", 2, True),
        ("9", 2, False),
        ("broken", 20, False),  # 2 % of 1,000 rows
        ("broken", 21, True),
    ],
)
def test_codes_that_are_rare(tmp_path: Path, code: str, n_rows: int, is_refused: bool) -> None:
    outcomes = [code] * n_rows + ["1", "0"] * ((1000 - n_rows) // 2) + ["1"] * (n_rows % 2)
    path = write(tmp_path / "x.csv", human_outcome=outcomes, score_difference=[1.0] * 1000)
    for read in (read_judged_battles, corpus):
        if is_refused:
            with pytest.raises(ValueError, match=f"unknown are '{code}'"):
                read(path)
        else:
            quarantine = read(path).quarantine
            assert len(quarantine) == n_rows
            assert quarantine["detail"].str.contains(code).all()


def test_codes_of_a_hostile_file_are_shown_inert_and_short(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", human_outcome=column(("\x1b[31m" + "x" * 999, "0", "1")))
    with pytest.raises(ValueError, match=r"corpora\.yaml") as refused:
        corpus(path)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_more_unknown_votes_than_two_per_cent_need_a_key(tmp_path: Path) -> None:
    few, many = (
        write(
            tmp_path / f"{n}.csv", human_outcome=[f"word-{k}" for k in range(n)] + ["1", "0"] * 50
        )
        for n in (2, 3)
    )
    assert len(corpus(few).quarantine) == 2
    with pytest.raises(ValueError, match=r"2\.9% of 103.*'word-0'.*'allow_quarantine: true'"):
        corpus(many)
    assert len(corpus(many, allow_quarantine=True).battles) == 100


def test_codes_that_another_coding_uses_are_refused_in_annotations(tmp_path: Path) -> None:
    scores = "{'adherence': 5}"
    preferences = {"human_pref": column(USUAL), "judge_pref": column(("1", "2", "0"))}
    sides = {"scores_a": [scores] * 100, "scores_b": [scores] * 100}
    path = write(tmp_path / "x.csv", **preferences, **sides)
    with pytest.raises(
        ValueError, match=r"x\.csv: column judge_pref holds.*'2' \(40 rows\).*convert the column"
    ):
        read_files("softelo-annotations", [path])
    with pytest.raises(ValueError, match=r"annotations.*Leave out 'outcomes'"):
        read_judged_battles(path, outcomes="1/2/0")


def test_a_winner_of_any_type_is_a_name_or_none() -> None:
    published = ["x", True, 7, 7.0, None, math.nan, 10**30, " y ", " 7", "tie", ["x"]]
    model_b = ["7", "x", "7", "7", "nan", "None", "y", "y", "7", "y", "y"]
    sides = pd.DataFrame({"model_a": "x", "model_b": model_b})
    expected = [1, None, 0, 0, None, None, None, 0, 0, 0.5, None]
    for n in (10, 11):  # with a list in the column, which leaves the others as they are
        found = outcomes_by_winner(pd.Series(published[:n], dtype=object), sides.head(n))
        assert found.astype(object).where(found.notna(), None).tolist() == expected[:n]


@pytest.mark.parametrize("text", ["1", "1/1", "1/-1/", "1/1.0/0", ""])
def test_codes_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 1/-1/0"):
        parse_codes(text)


def test_every_code_from_the_third_on_is_a_tie() -> None:
    assert list(parse_codes("model_a/model_b/tie/both_bad").values()) == [1.0, 0.0, 0.5, 0.5]


def test_a_vote_that_is_missing_is_none_whatever_the_codes_are_called() -> None:
    votes = pd.Series(["A", "B", None, "nan"], dtype=object)
    for tie, last in (("None", None), ("nan", 0.5)):
        shares = outcomes_by_code(votes, {"A": 1.0, "B": 0.0, tie: 0.5}).astype(object)
        assert shares.where(shares.notna(), None).tolist() == [1.0, 0.0, None, last]


def test_blank_texts_are_no_votes_in_files_without_empty_fields(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    votes = {"human_outcome": ["1", "0", " "] * 9, "score_difference": 1.0}
    pd.DataFrame({"model_a": "ant", "model_b": "bee", **votes}).to_parquet(path)
    assert corpus(path).battles["human_outcome"].isna().sum() == 9
    assert read_judged_battles(path).scored["human_outcome"].isna().sum() == 9


def test_a_corpus_in_which_nobody_wins_by_the_stated_code_is_of_another_coding(tmp_path):
    path = write(tmp_path / "x.csv", human_outcome=["1", "0"] * 9)
    with pytest.raises(ValueError, match=r"corpus 'mine' has no -1.*1/-1/0"):
        corpus(path, outcomes="1/-1/0")


def test_stated_codes_belong_to_the_content(tmp_path: Path) -> None:
    path = str(write(tmp_path / "x.csv", human_outcome=["1", "2"]))
    revisions = {
        content_revision(CorpusDefinition(slug="mine", reader="battles", location=path, **options))
        for options in ({}, {"outcomes": "1/2"}, {"outcomes": "2/1"}, {"allow_quarantine": True})
    }
    assert len(revisions) == 4


def test_votes_that_an_entry_calls_missing_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", winner=["model_a", "model_b", "error"] * 9)
    with pytest.raises(ValueError, match="unknown are 'error'"):
        corpus(path)
    for missing in ("error", ["Error", -1]):
        votes = corpus(path, missing=missing).battles["human_outcome"]
        assert votes.isna().sum() == 9
        assert votes.dropna().isin([0.0, 1.0]).all()
    with pytest.raises(ValueError, match="is a verdict, not a failure"):
        corpus(path, missing="tie")


@pytest.mark.parametrize(
    "column", [{"source": "llm-judge"}, {"annotator": "gpt-4"}, {"judge_model": "some-judge"}]
)
def test_a_winner_that_a_column_calls_a_judges_is_no_vote_of_a_corpus(tmp_path, column) -> None:
    path = write(tmp_path / "x.csv", winner=["model_a", "model_b"] * 9, **column)
    with pytest.raises(ValueError, match=f"column '{next(iter(column))}' .* is no vote of people"):
        corpus(path)
    people = write(tmp_path / "y.csv", human_outcome=["1", "0"] * 9, **column)
    assert corpus(people).battles["human_outcome"].notna().all()


def test_the_command_refuses_what_it_cannot_read_and_reads_it_as_stated(tmp_path, capsys):
    path = write(
        tmp_path / "x.csv",
        human_outcome=column(("1", "-1", "0")),
        score_difference=["1"] * 96 + ["nan"] * 4,
    )
    command = ["rank", str(path), "--out", str(tmp_path / "out"), "--no-report"]
    assert main(command) == COULD_NOT_RUN
    assert "--outcomes 1/-1/0" in " ".join(capsys.readouterr().err.split())
    assert main([*command, "--outcomes", "1/-1/0"]) == COULD_NOT_RUN
    told = " ".join(capsys.readouterr().err.split())
    assert "4.0% of 100 rows are lost (4 nan-score)" in told
    assert "--allow-quarantine" in told
    main([*command, "--outcomes", "1/-1/0", "--allow-quarantine"])
    assert "are lost" not in capsys.readouterr().err  # the judge is refused next, as a constant
