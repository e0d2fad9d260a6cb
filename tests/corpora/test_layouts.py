"""Every layout of published files: the few rows of `layouts/*.yaml`, and what must come of them.
`battles` and `verdicts` are columns that come out (a value is of all rows), `quarantine` rows set
aside with reason and detail. Of `each`, a row beside the base row leaves that, or it `keeps`."""

import ast
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from judgeline.io import Stated, layouts, score_battles
from judgeline.io.layout import VERDICTS
from judgeline.io.layouts.softelo import _read_scores as read_scores
from judgeline.io.records import joined
from judgeline.paths import ROOT
from judgeline.tables.corpus import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from pipelines.commands.file_commands import FormatOption
from resources.config.corpora import READERS, CorpusDefinition, load_corpora
from resources.corpora.reading import CorpusRead, read_corpus, read_files

DTYPES = (BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES)
LAYOUTS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted((Path(__file__).parent / "layouts").glob("*.yaml"))
}


def cases() -> Iterator[Any]:
    for name, layout in LAYOUTS.items():
        for case in layout["cases"]:
            for suffix in case.get("formats", [None]):
                label = f"{name}: {case['case']}{f', {suffix}' if suffix else ''}"
                yield pytest.param(layout, case, suffix, id=label)


def cell(value: Any) -> Any:
    """Return a value of a fixture as it is published: scores in one word become JSON."""
    if isinstance(value, dict) and "all" in value:
        scores = {**dict.fromkeys(CRITERIA, value["all"]), **value}
        return json.dumps({k: v for k, v in scores.items() if k != "all"}, separators=(",", ":"))
    return value


def write(path: Path, rows: list[Any], base: dict[str, Any]) -> None:
    full = [
        {name: cell(value) for name, value in {**base, **row}.items()}
        if isinstance(row, dict)
        else row
        for row in rows
    ]
    if path.suffix == ".parquet":
        arrays = {}
        for name in dict.fromkeys(name for row in full for name in row):
            cells = [row.get(name) for row in full]
            is_null = name in base and cells.count(None) == len(cells)
            kind = pa.array([base[name]]).type if is_null else None
            arrays[name] = pa.array(cells, kind)
        pq.write_table(pa.table(arrays), path)
    elif path.suffix == ".csv":
        pd.DataFrame(full).to_csv(path, index=False)
    else:
        lines = [one if isinstance(one, str) else json.dumps(one) for one in full]
        text = f"[{','.join(lines)}]" if path.suffix == ".json" else "\n\n".join(lines)
        path.write_text(text, encoding="utf-8")


def read(folder: Path, layout: Any, case: Any, suffix: str | None, rows: list[Any]) -> CorpusRead:
    folder.mkdir()
    base = case.get("base", layout.get("base", {}))
    file = folder / case.get("file", layout["file"])
    file = file.with_suffix(f".{suffix}") if suffix else file
    if "text" in case:
        file.write_text(str(case["text"]), encoding="utf-8")
    elif rows:
        write(file, rows, base)
    bare = layout["reader"] == "comparia" or "beside" in layout
    for name, others in {**layout.get("beside", {}), **case.get("beside", {})}.items():
        write(folder / name, others, {} if bare else base)
    default = file.name if [*folder.iterdir()] == [file] else ""
    location = str(folder / case.get("location", default))
    options = case.get("options", layout.get("options", {}))
    entry = {"slug": "t", "reader": layout["reader"], "location": location, **options}
    return read_corpus(CorpusDefinition(**entry))


def plain(column: pd.Series) -> list[Any]:
    values = column.astype(object).where(column.notna(), None).tolist()
    return [one.isoformat() if isinstance(one, pd.Timestamp) else one for one in values]


def require(found: CorpusRead, case: Any, quarantine: list[Any]) -> None:
    for table, dtypes in zip(found, DTYPES, strict=True):
        assert {name: str(dtype) for name, dtype in table.dtypes.items()} == dtypes
    assert found.battles["battle_id"].is_unique
    assert found.verdicts["identity"].is_unique
    assert found.verdicts["battle_id"].isin(found.battles["battle_id"]).all()
    told = found.quarantine
    assert told[["row", "reason"]].to_numpy().tolist() == [one[:2] for one in quarantine]
    for detail, (_, _, words) in zip(told["detail"], quarantine, strict=True):
        assert words in detail
    for table, wanted in ((found.battles, "battles"), (found.verdicts, "verdicts")):
        for name, values in case.get(wanted, {}).items():
            listed = values if isinstance(values, list) else [values] * len(table)
            assert plain(table[name]) == listed, name
    for name in case.get("distinct", []):
        assert (found.battles if name in found.battles else found.verdicts)[name].is_unique


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "case", "suffix"), list(cases()))
def test_a_file_of_a_layout(tmp_path: Path, layout: Any, case: Any, suffix: str | None) -> None:
    rows = case.get("rows", [])
    if "error" in case:
        with pytest.raises(ValueError, match=case["error"]):
            read(tmp_path / "t", layout, case, suffix, rows)
    elif "each" not in case:
        found = read(tmp_path / "t", layout, case, suffix, rows)
        require(found, case, case.get("quarantine", []))
    else:
        alone = read(tmp_path / "alone", layout, case, suffix, [{}])
        for place, (change, reason, words) in enumerate(rows):
            found = read(tmp_path / f"{place}", layout, case, suffix, [{}, change])
            require(found, case, [[1, reason, words]])
            if "keeps" not in case:
                pd.testing.assert_frame_equal(found.battles, alone.battles)
                pd.testing.assert_frame_equal(found.verdicts, alone.verdicts)


def first_of(tmp_path: Path, name: str, *rows: Any) -> CorpusRead:
    return read(tmp_path / "t", LAYOUTS[name], {}, None, list(rows))


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    base = LAYOUTS["lmarena-100k"]["base"]
    pq.write_table(pa.Table.from_pylist([base]).slice(0, 0), path)
    with pytest.raises(ValueError, match=r"x\.parquet holds a header and no rows"):
        read_files("lmarena-100k", [path])


def test_derived_ids_survive_growth(tmp_path: Path) -> None:
    path, table = tmp_path / "x.csv", pd.DataFrame({"model_a": "ant", "model_b": ["bee"] * 2})
    ids = []
    for grown in (table, pd.concat([table, table.assign(model_b="cat")])):
        grown.assign(winner="tie").to_csv(path, index=False)
        ids.append(read_files("battles", [path]).battles["battle_id"].tolist())
    assert ids[1][:2] == ids[0]
    assert len(set(ids[1])) == 4


@pytest.mark.parametrize("depth", ["[" * 1999, "(" * 9999])
def test_scores_nested_without_end_are_unreadable(tmp_path: Path, depth: str) -> None:
    found = first_of(tmp_path, "softelo-annotations", {"scores_a": depth})
    assert found.quarantine["reason"].tolist() == ["unreadable-scores"]
    assert len(found.battles) == 1


def test_what_no_fixture_can_hold(tmp_path: Path) -> None:
    """Numbers beyond any float, a list without end, half a surrogate pair, bytes of no text."""
    for reader, change in (("mt-bench", "turn"), ("alpaca-eval", "preference")):
        folder = tmp_path / reader
        folder.mkdir()
        found = first_of(folder, reader, {change: 10**400})
        assert len(found.quarantine) == 1
    found = first_of(tmp_path, "arena-hard", {"model": "\ud800"}, "[" * 100_000)
    assert found.quarantine["reason"].tolist() == ["unreadable-record"]
    assert found.battles["model_a"].tolist() == ["?"]
    (tmp_path / "x.jsonl").write_bytes(b'{"uid": "\xff"}')
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_files("arena-hard", [tmp_path / "x.jsonl"], Stated(baseline="base"))


def test_counted_battles_are_no_corpus(tmp_path: Path) -> None:
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,winner,n_battles\nant,bee,tie,7\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"battles\.csv has counted battles .*judgeline rank"):
        read_files("battles", [path])


def test_a_baseline_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not name the model it compares with"):
        read_files("arena-hard", [tmp_path / "x.jsonl"])
    config = tmp_path / "corpora.yaml"
    for options, told in (("", "'baseline' under"), ("baselin: base", "did you mean 'baseline'")):
        block = f", arena_hard: {{{options}}}" if options else ""
        config.write_text(f"x: {{reader: arena-hard, location: one{block}}}", encoding="utf-8")
        with pytest.raises(ValueError, match=told):
            load_corpora(config)


def test_parts_of_an_id_cannot_be_confused() -> None:
    parts = [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "b", "c")]
    assert len({joined(*one) for one in parts}) == len(parts)


def test_games_of_either_program_are_scored_as_wins_ties_and_losses(tmp_path: Path) -> None:
    """The strength of a label is kept in the answer and is none of an outcome."""
    games = [[{"score": "B>>A"}, {"score": "A>B"}], [{"score": "A=B"}, None]]
    rows = [{"uid": f"u{n}", "games": pair} for n, pair in enumerate(games)]
    for name, given, score in (("arena-hard", rows, 1.0), ("mt-bench", [{}], 0.5)):
        (tmp_path / name).mkdir()
        found = first_of(tmp_path / name, name, *given)
        scored = score_battles(found.battles, found.verdicts)
        assert scored[["model_a", "score_difference"]].to_numpy().tolist() == [["ant", score]]


# Real data


def test_the_released_sample_holds_what_its_rows_say(sample: Path) -> None:
    found = read_files("softelo-annotations", [sample])
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
    same = found.verdicts[["judge", "order", "status"]].drop_duplicates().to_numpy().tolist()
    assert same == [["recorded", "mean", "ok"]]
    unknown = [one["meta_lang"] == "unknown" for one in rows]
    assert found.battles["language"].isna().tolist() == unknown


@pytest.fixture
def preferences(data_dir: Path) -> Path:
    path = data_dir / "alpacaeval_reference_battles.parquet"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    return path


def test_thirty_real_models(preferences: Path) -> None:
    published = pd.read_parquet(preferences)
    found = read_files("reference-battles", [preferences])
    alone = published["model"].eq(published["reference_model"])
    assert found.quarantine["reason"].tolist() == ["self-battle"] * alone.sum()
    told = found.battles.merge(found.verdicts, on="battle_id", validate="one_to_one")
    pd.testing.assert_series_equal(
        told.groupby("model_a")["recorded_outcome"].mean(),
        published[~alone].groupby("model")["preference"].mean(),
        check_names=False,
    )
    entry = load_corpora(ROOT / "config" / "examples" / "corpora.yaml")["alpacaeval-reference"]
    assert entry.reference.model == published["reference_model"].iloc[0]
    assert entry.judges == found.verdicts["judge"].unique().tolist()


def test_real_preferences_keep_their_meaning_as_annotations(preferences, tmp_path):
    """The models' win rates must come out as the data's own mean preference."""
    real = pd.read_parquet(preferences).dropna(subset=["preference"])
    real = real[real["model"].ne(real["reference_model"])]
    real = real.drop_duplicates(["question_id", "model", "chars_model", "chars_reference"])
    rows = real.rename(columns={"question_id": "instruction", "judge": "annotator"}).assign(
        output_1=real["chars_reference"].map("{} characters".format),
        output_2=real["chars_model"].map("{} characters".format),
        generator_1=real["reference_model"],  # AlpacaEval puts the reference first
        generator_2=real["model"],
        preference=1 + real["preference"],
    )
    rows.to_json(tmp_path / "annotations.json", orient="records")
    found = read_files("alpaca-eval", [tmp_path / "annotations.json"])
    assert found.quarantine.empty
    told = found.battles.merge(found.verdicts, on="battle_id", validate="one_to_one")
    ours = 1 - told.groupby("model_b")["recorded_outcome"].mean()
    theirs = real.groupby("model")["preference"].mean()
    assert ours.to_dict() == pytest.approx(theirs.to_dict(), abs=1e-9)


def test_many_annotations_keep_their_scores_and_order(tmp_path: Path) -> None:
    n, rng = 2_500, np.random.default_rng(4)
    halves = rng.integers(4, 21, (2, n, 6)) / 2
    texts = [[json.dumps(dict(zip(CRITERIA, one, strict=True))) for one in side] for side in halves]
    base = {name: cell(value) for name, value in LAYOUTS["softelo-annotations"]["base"].items()}
    ids = [f"q{number}" for number in range(n)]
    table = pd.DataFrame([base] * n).assign(
        original_question_id_hash=ids, scores_a=texts[0], scores_b=texts[1]
    )
    columns = list(table)[::-1]  # their order does not matter
    table[columns].to_csv(tmp_path / "big.csv", index=False)
    found = read_files("softelo-annotations", [tmp_path / "big.csv"])
    sides = [found.verdicts[[f"{one}_{side}" for one in CRITERIA]].to_numpy() for side in "ab"]
    assert (sides == halves).all()


SIX = dict(zip(CRITERIA, (1, 9.5, 10, 2.25, 10.0, 7), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        str(SIX),
        json.dumps(SIX),
        json.dumps(SIX, separators=(",", ":")),
        json.dumps(SIX, indent=1),
        str(dict(reversed(SIX.items()))),
        f" {SIX} ",
        str(SIX).replace("'", '"', 2),
        str(SIX | {"tone": 3}),
    ],
)
def test_six_scores_read_alike_in_every_notation(text: str) -> None:
    assert read_scores(text) == (tuple(SIX.values()), "")


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("10.5", "score-off-scale"), ("0.5", "score-off-scale"), ("11", "score-off-scale"),
        ("100", "score-off-scale"), ("07", "unreadable-scores"), ("'7'", "unreadable-scores"),
        ("\u0667", "unreadable-scores"), ("None", "missing-score"), ("nan", "nan-score"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 5])
def test_five_good_scores_are_none(number: str, reason: str, place: int) -> None:
    parts = [f"'{name}': 7.0" for name in CRITERIA]
    parts[place] = f"'{CRITERIA[place]}': {number}"
    assert read_scores(f"{{{', '.join(parts)}}}")[1] == reason


def test_every_reader_has_fixtures() -> None:
    assert {layout["reader"] for layout in LAYOUTS.values()} | {"arena", "ratings"} == set(READERS)


def test_import_offers_every_layout_of_verdicts() -> None:
    offered = get_args(get_args(FormatOption)[0])
    told = {one.name for one in layouts.LAYOUTS if one.advice is VERDICTS}
    assert {*offered} == told | {"soft-elo"}


def test_a_layout_of_rank_alone_is_no_corpus(tmp_path: Path) -> None:
    (only,) = (one for one in layouts.LAYOUTS if one.name == "promptfoo")
    assert only.name not in READERS
    with pytest.raises(ValueError, match="promptfoo is read by judgeline rank, and no corpus"):
        only.read([tmp_path])
