"""Released Soft-Elo annotations: the sample, and files in the layout of the full release."""

import ast
import csv
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from resources.config.corpora import CorpusDefinition
from resources.corpora.reading import CorpusRead, read_corpus

COLUMNS = """
    battle_id source_dataset judge row_index instruction_id_hash original_question_id_hash
    instruction_index model_a model_b human_pref human_label judge_pref judge_label scores_a
    scores_b len_a len_b language source metadata_model_a metadata_model_b parse_error agree
""".split()  # noqa: SIM905 - as the release writes them


def read(location: Path) -> CorpusRead:
    return read_corpus(
        CorpusDefinition(
            slug="t", display_name="T", reader="softelo-annotations", location=str(location)
        )
    )


def scores(**changes: float) -> str:
    return json.dumps({**dict.fromkeys(CRITERIA, 7.5), **changes}, separators=(",", ":"))


def row(number: int, **changes: object) -> dict[str, object]:
    return {
        **dict.fromkeys(COLUMNS, ""),
        "battle_id": f"judge-battle-{number}",
        "source_dataset": "lmarena100k",
        "judge": "Qwen/Qwen2.5 72B",
        "original_question_id_hash": f"q{number}",
        "model_a": "ant",
        "model_b": "bee",
        "human_pref": "0.0",
        "judge_pref": "0.25",
        "scores_a": scores(),
        "scores_b": scores(clarity=6.0),
        "language": "en",
        "parse_error": "False",
        "agree": "True",
        **changes,
    }


@pytest.fixture
def published(tmp_path: Path):
    def write(*rows: dict[str, object], name: str = "one.csv") -> Path:
        pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def reasons(found: CorpusRead) -> dict[int, str]:
    return dict(zip(found.quarantine["row"], found.quarantine["reason"], strict=True))


def test_sample_holds_what_its_rows_say(sample: Path) -> None:
    found = read(sample)
    with sample.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert found.quarantine.empty
    assert found.battles["battle_id"].tolist() == [one["row_id"] for one in rows]
    assert found.battles["human_outcome"].tolist() == [1 - float(r["human_pref"]) for r in rows]
    assert found.verdicts["recorded_outcome"].tolist() == [1 - float(r["judge_pref"]) for r in rows]
    for side in "ab":
        mine = found.verdicts[[f"{criterion}_{side}" for criterion in CRITERIA]].to_numpy()
        theirs = [list(ast.literal_eval(r[f"scores_{side}"]).values()) for r in rows]
        assert mine.tolist() == theirs
    assert set(found.verdicts["judge"]) == {"recorded"}
    assert set(found.verdicts["order"]) == {"mean"}
    assert set(found.verdicts["status"]) == {"ok"}
    unknown = [one["meta_lang"] == "unknown" for one in rows]
    assert found.battles["language"].isna().tolist() == unknown


def test_tables_have_the_agreed_columns_and_types(published) -> None:
    found = read(published(row(0)))
    for table, dtypes in zip(
        found, (BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES), strict=True
    ):
        assert {name: str(dtype) for name, dtype in table.dtypes.items()} == dtypes


def test_zero_means_that_a_wins(published) -> None:
    rows = [row(n, human_pref=p, judge_pref=p) for n, p in enumerate(["0", "0.5", "1.0"])]
    found = read(published(*rows))
    assert found.battles["human_outcome"].tolist() == [1.0, 0.5, 0.0]
    assert found.verdicts["recorded_outcome"].tolist() == [1.0, 0.5, 0.0]


def test_a_swap_average_of_a_win_and_a_tie_is_kept(published) -> None:
    found = read(published(row(0, judge_pref="0.25"), row(1, judge_pref=".75")))
    assert found.verdicts["recorded_outcome"].tolist() == [0.75, 0.25]


def test_judges_share_battles(published, tmp_path: Path) -> None:
    published(row(0), row(1, human_pref=""), row(2), name="one.csv")
    published(
        row(1, judge="Other", human_pref="1", battle_id="x"),
        row(0, judge="Other", language="", battle_id="y"),
        name="two.csv",
    )
    found = read(tmp_path)
    assert found.battles["battle_id"].tolist() == ["q0:ant:bee", "q1:ant:bee", "q2:ant:bee"]
    assert found.battles["question_id"].tolist() == ["q0", "q1", "q2"]
    assert found.battles["human_outcome"].tolist() == [1.0, 0.0, 1.0]
    assert found.verdicts.groupby("judge")["battle_id"].count().to_dict() == {
        "other": 2,
        "qwen-qwen2.5-72b": 3,
    }
    assert found.verdicts["identity"].is_unique
    assert found.quarantine.empty


def test_battles_without_question_hash_are_counted_per_judge(published, tmp_path: Path) -> None:
    blank = {"original_question_id_hash": ""}
    published(row(0, **blank), row(1, **blank), row(2, **blank, model_b="cat"), name="one.csv")
    published(row(0, **blank, judge="o"), row(1, **blank, judge="o"), name="two.csv")
    found = read(tmp_path)
    assert len(found.battles) == 3
    assert found.battles["battle_id"].is_unique
    assert found.verdicts["battle_id"].value_counts().tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scores_a": "{}"}, "no-scores"),
        ({"scores_b": ""}, "no-scores"),
        ({"scores_a": scores(clarity=float("nan"))}, "nan-score"),
        ({"scores_a": scores(clarity=7.5).replace("7.5", "nan").replace('"', "'")}, "nan-score"),
        ({"scores_a": '{"clarity": 5}'}, "missing-score"),
        ({"scores_a": scores(clarity=11)}, "score-off-scale"),
        ({"scores_a": scores(clarity=0)}, "score-off-scale"),
        ({"scores_a": scores(clarity=True)}, "unreadable-scores"),
        ({"scores_a": "[1, 2]"}, "unreadable-scores"),
        ({"scores_a": scores().replace("{", '{"clarity": 1, ', 1)}, "unreadable-scores"),
        ({"scores_a": "__import__('os').getcwd()"}, "unreadable-scores"),
        ({"scores_a": "[" * 1999}, "unreadable-scores"),
        ({"scores_a": "(" * 9999}, "unreadable-scores"),
        ({"judge_pref": "0.3"}, "unknown-preference"),
        ({"judge_pref": "A"}, "unknown-preference"),
    ],
)
def test_a_bad_verdict_loses_its_scores_and_never_the_battle(published, changes, reason) -> None:
    found = read(published(row(0), row(1, **changes)))
    assert reasons(found) == {1: reason}
    assert found.battles["human_outcome"].tolist() == [1.0, 1.0]
    assert found.verdicts["status"].tolist() == ["ok", "parse_error"]
    points = [f"{criterion}_{side}" for side in "ab" for criterion in CRITERIA]
    assert found.verdicts.loc[0, points].notna().all()
    assert found.verdicts.loc[1, points].isna().all()
    assert str(next(iter(changes.values())))[:20] in found.quarantine["detail"][0]


def test_a_failure_that_the_publisher_marks_needs_no_quarantine(published) -> None:
    found = read(published(row(0, parse_error="True", scores_a="{}", judge_pref=""), row(1)))
    assert found.quarantine.empty
    assert found.verdicts["status"].tolist() == ["parse_error", "ok"]
    assert len(found.battles) == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"human_pref": "0.25"}, "unknown-winner"),
        ({"human_pref": "model_a"}, "unknown-winner"),
        ({"model_a": " "}, "missing-model"),
        ({"model_b": "ant"}, "self-battle"),
        ({"judge": ""}, "missing-judge"),
        ({"original_question_id_hash": "q0"}, "duplicate-battle"),
        (
            {"original_question_id_hash": "q0", "judge": "x", "human_pref": "1"},
            "conflicting-vote",
        ),
    ],
)
def test_a_bad_battle_is_quarantined_with_its_verdict(published, changes, reason) -> None:
    found = read(published(row(0), row(1, **changes), row(2)))
    assert reasons(found) == {1: reason}
    assert found.battles["question_id"].tolist() == ["q0", "q2"]
    assert found.verdicts["battle_id"].tolist() == ["q0:ant:bee", "q2:ant:bee"]


def test_a_repeated_row_has_no_say_in_the_vote(published) -> None:
    rows = [row(0, human_pref=""), row(0, human_pref="0"), row(0, human_pref="1", judge="other")]
    found = read(published(*rows))
    assert reasons(found) == {1: "duplicate-battle"}
    assert found.battles["human_outcome"].tolist() == [0.0]


def test_nobody_voted_is_not_a_tie(published) -> None:
    found = read(published(row(0, human_pref="")))
    assert found.battles["human_outcome"].isna().all()
    assert found.quarantine.empty


def test_names_like_missing_values_are_names(published) -> None:
    assert read(published(row(0, model_a="NA", model_b="null"))).battles["model_a"][0] == "NA"


def test_files_of_several_corpora_are_refused(published, tmp_path: Path) -> None:
    published(row(0), row(1, source_dataset="comparia"))
    with pytest.raises(ValueError, match=r"2 corpora \(comparia, lmarena100k\).* name the files"):
        read(tmp_path)


def test_judges_that_share_a_slug_are_refused(published) -> None:
    with pytest.raises(ValueError, match="'A b' and 'a-b' share the slug 'a-b'; rename one"):
        read(published(row(0, judge="A b"), row(1, judge="a-b")))


def test_order_of_the_columns_does_not_matter(published, tmp_path: Path) -> None:
    straight = published(row(0), row(1))
    turned = tmp_path / "turned.csv"
    pd.read_csv(straight, dtype=str, keep_default_na=False)[COLUMNS[::-1]].to_csv(turned)
    for one, other in zip(read(straight), read(turned), strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_25_000_rows_take_less_than_a_second_or_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    n = 25_000
    halves = rng.integers(4, 21, (2, n, 6)) / 2
    texts = [
        [json.dumps(dict(zip(CRITERIA, one, strict=True))) for one in side.tolist()]
        for side in halves
    ]
    table = pd.DataFrame([row(0)] * n, columns=COLUMNS).assign(
        original_question_id_hash=[f"q{number}" for number in range(n)],
        scores_a=texts[0],
        scores_b=texts[1],
    )
    table.to_csv(tmp_path / "big.csv", index=False)
    started = time.perf_counter()
    found = read(tmp_path / "big.csv")
    assert time.perf_counter() - started < 6  # half a second or so on an idle machine
    difference = sum(
        found.verdicts[f"{criterion}_a"] - found.verdicts[f"{criterion}_b"]
        for criterion in CRITERIA
    )
    assert difference.to_numpy() == pytest.approx((halves[0] - halves[1]).sum(axis=1))
