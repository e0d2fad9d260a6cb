"""What a dry run says of a served judge: calls, tokens, money and gain, in all of its forms."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of
from upath import UPath

from assets.judging.assets import ASKED
from assets.partitions import corpus_judge_key
from judgeline.cli import main
from judgeline.intervals import sampling_half_width
from judgeline.judges.budget import Budget
from judgeline.judges.buying import RETRIED, Buyer
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge import call_identity, judge_key
from judgeline.judges.judge_plan import JudgePlan, TokenEstimate, gpu_hours, told
from judgeline.judges.live.probe import Capabilities, remember
from judgeline.judges.presentation import Answer, present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.tables.corpus import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.tables.judging import VERDICTS
from pipelines.commands.plan import cut_short, plan_run, require_covered
from pipelines.commands.run import run_lineage
from resources.config.corpora import CorpusDefinition
from resources.config.options import PanelOptions
from resources.corpora.reading import read_corpus
from resources.opening import open_judge
from resources.tables.store import ParquetTables

URL = "http://127.0.0.1:9/v1"  # nobody listens: a plan asks nobody
N_BATTLES, N_MODELS = 60, 5
JUDGE = {
    "slug": "j", "display_name": "J", "family": "f", "kind": "openai", "model": "tiny",
    "base_url": URL, "decoding": {"max_tokens": 50},
    "price_per_million": {"prompt": 3.0, "completion": 15.0, "currency": "EUR"},
}  # fmt: skip
PANEL = PanelOptions(battles=10, runs=3)


class Desk:
    """A corpus of battles of equal length, a priced judge, and where its answers are kept."""

    def __init__(self, folder: Path) -> None:
        pairs = [(i % N_MODELS, (i + 1 + i // N_MODELS % 4) % N_MODELS) for i in range(N_BATTLES)]
        pd.DataFrame(
            {
                "battle_id": [f"b{i}" for i in range(N_BATTLES)],
                "model_a": [f"m{a}" for a, _ in pairs],
                "model_b": [f"m{b}" for _, b in pairs],
                "human_outcome": [1.0, 0.0] * (N_BATTLES // 2),
                "instruction": [f"question {i:04}" for i in range(N_BATTLES)],
                "completion_a": [f"one {i:04}" for i in range(N_BATTLES)],
                "completion_b": [f"two {i:04}" for i in range(N_BATTLES)],
            }
        ).to_parquet(folder / "battles.parquet")
        self.folder = folder
        self.corpus = CorpusDefinition(
            slug="c", reader="battles", location=str(folder / "battles.parquet")
        )
        self.judge = JudgeDefinition(**JUDGE)
        self.tables = ParquetTables(base_uri=str(folder / "tables")).create_io_manager(None)
        self.buyer = Buyer(VerdictStore(UPath(folder / "verdicts")))

    def plan(self, asked: Sequence[str] = ASKED, **changes: object) -> JudgePlan:
        """Plan the tables `asked` of the judge with some of its fields changed."""
        judge = JudgeDefinition(**{**JUDGE, **changes})
        n_battles, (step,) = plan_run(self.corpus, [judge], self.tables, self.buyer, asks=asked)
        assert n_battles == N_BATTLES
        return step

    def probe(self, *, logs: bool = True, alternatives: int | None = 20) -> None:
        """Remember what the endpoint supports."""
        found = Capabilities("max_tokens", True, logs, None, alternatives)
        remember(self.folder / "home", URL, "tiny", found)

    def write(self, **columns: object) -> pd.DataFrame:
        """Change columns of the corpus, and return its battles."""
        battles = pd.read_parquet(self.corpus.location).assign(**columns)
        battles.to_parquet(self.corpus.location)
        return battles

    def buy(self, n_battles: int, status: str = "ok", n_runs: int = 1) -> None:
        """Store answers to both orders of the first battles: 400 and 10 tokens each."""
        self.probe(logs=False, alternatives=None)
        opened = open_judge(self.judge, self.corpus)
        battles = pd.read_parquet(self.folder / "battles.parquet").head(n_battles)
        answer = Answer("{}", None if status == "ok" else status, 400, 10)
        rows = [
            {
                "identity": call_identity(opened, shown),
                "status": status,
                "answered_at": pd.Timestamp("2026-01-01", tz="UTC"),
                "answer": answer.text,
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": answer.completion_tokens,
                "battle_id": shown.battle_id,
            }
            for shown in present(battles, n_runs)
        ]
        self.buyer.store.append(judge_key(opened), rows)

    def publish(self, judge: str, half_width: float, n_battles: int, excess: float = 0.001) -> None:
        """Store a leaderboard of two models with one half-width, and one without bounds.

        Its judge is `excess` Elo points wrong about every model beyond a noise of 1 Elo point.
        """
        board = pd.DataFrame(
            {
                "judge_rating": [half_width, 50 + half_width, 0.0],
                "judge_lower": [0.0, 50.0, -np.inf],
                "judge_upper": [2 * half_width, 50 + 2 * half_width, np.inf],
                "n_battles": 3,  # against anchors only: says nothing of how many were judged
            }
        )
        scored = pd.DataFrame({"battle_id": [f"b{i}" for i in range(n_battles)]})
        wrong = excess * np.where(np.arange(12) % 2, 1.0, -1.0)
        heldout = pd.DataFrame(
            {
                "model": [f"m{k}" for k in range(12)], "method": "auto", "basis": "gap",
                "rating": 1500.0 + wrong, "human_rating": 1500.0, "residual": wrong,
                "std_error": 1.0, "std_error_analytic": 1.0, "human_std_error": 0.001,
                "vote_std_error": 0.001, "design_effect": 1.0, "outward": 0.0, "beta": 1.0,
                "n_battles": 10, "n_votes": 10, "flags": "",
            }
        )  # fmt: skip
        made = {"leaderboard": board, "scored_battles": scored, "heldout_ratings": heldout}
        for asset, table in made.items():
            file = self.folder / "tables" / asset / "c" / f"{judge}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            table.to_parquet(file)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUDGELINE_CONFIG", raising=False)
    return Desk(tmp_path)


def test_a_judge_that_was_never_asked_has_everything_before_it(desk: Desk) -> None:
    step = desk.plan()
    assert (step.n_calls, step.n_stored) == (2 * N_BATTLES, 0)
    assert step.tokens.completion_tokens == 2 * N_BATTLES * 110
    assert step.tokens.basis.startswith("estimated at 4 bytes a token")
    expected = 3 * step.tokens.prompt_tokens + 15 * step.tokens.completion_tokens
    assert step.money == pytest.approx(expected / 1e6, rel=1e-12)
    most = 3 * step.tokens.most_prompt_tokens + 15 * 2 * N_BATTLES * 50
    assert step.most_money == pytest.approx(most / 1e6, rel=1e-12)
    assert desk.plan(replicates=3).n_calls == 6 * N_BATTLES
    free = desk.plan(price_per_million=None)
    assert (free.money, free.most_money, free.currency) == (None, None, "")
    assert "price unknown: the judge has no 'price_per_million'" in told(free)


@pytest.mark.parametrize(
    ("is_probed", "changes", "most"),
    [
        (True, {}, RUBRIC.most_tokens),
        (True, {"decoding": {"max_tokens": 900}}, 900),
        (True, {"structured_output": "off"}, 4096),
        (True, {"batch": True}, 4096),  # whose requests have no such bound
        (True, {"asks": ["choice"]}, 4096),
        (False, {}, 4096),  # whether the endpoint keeps to a schema is not known
    ],
)
def test_the_most_that_a_call_can_cost_is_what_its_request_allows(
    is_probed, changes, most: int, desk: Desk
) -> None:
    if is_probed:
        desk.probe()
    step = desk.plan(["verdicts", "choice_verdicts"], **{"decoding": {}, **changes})
    assert step.tokens.most_completion_tokens == step.n_calls * most > 0


def test_stored_answers_are_subtracted_and_tell_what_the_others_take(desk: Desk) -> None:
    desk.buy(20)
    step = desk.plan()
    assert (step.n_calls, step.n_stored) == (80, 40)
    # equal texts, equal tokens: what the endpoint counted for one holds for each
    assert (step.tokens.prompt_tokens, step.tokens.completion_tokens) == (80 * 400, 80 * 10)
    assert step.tokens.basis == "estimated from 40 answers of this judge"
    assert step.money == pytest.approx(80 * (400 * 3 + 10 * 15) / 1e6, rel=1e-12)
    desk.buy(N_BATTLES)
    done = desk.plan()
    assert (done.n_calls, done.n_stored, done.tokens, done.money) == (0, 120, None, None)
    assert told(done) == ["c|j: no calls (120 answered already)"]
    assert desk.plan(revision="2").n_calls == 2 * N_BATTLES  # another setting


def test_failures_are_planned_as_they_are_bought(desk: Desk) -> None:
    desk.buy(20, "refusal")
    kept = desk.plan()
    assert kept.n_calls == 80
    assert kept.tokens.completion_tokens == 10 * 80  # failures are billed like answers
    desk.buy(40, "truncated")  # another attempt at the first half, the first at the second
    assert desk.plan().n_calls == 80


OTHERS = np.median([40 * np.sqrt(15 / 60), 80 * np.sqrt(30 / 60)])


@pytest.mark.parametrize(
    ("boards", "words"),
    [
        # its own intervals shrink with the root of the battles, those of a whole corpus not at all
        ([("j", 40.0, 30)], "median half-width 40 Elo now, about 28 then at best"),
        # and not where the judge is wrong by more than the noise
        ([("j", 40.0, 30, 50.0)], "median half-width 40 Elo now, about 40 then at best"),
        ([("k", 40.0, N_BATTLES)], ".*about 40 Elo if it judges like.*"),
        ([("k", 40.0, 15), ("l", 80.0, 30)],
         f"median half-width about {OTHERS:.0f} Elo if it judges like the 2 judged before"),
    ],
)  # fmt: skip
def test_intervals_are_foreseen_by_own_ratings_or_those_of_others(desk: Desk, boards, words):
    for board in boards:
        desk.publish(*board)
    desk.buy(7)
    assert re.fullmatch(words, desk.plan().half_width)


def test_without_any_ratings_only_sampling_is_told(desk: Desk) -> None:
    per_model = 2 * N_BATTLES / N_MODELS
    width = sampling_half_width(per_model, miscoverage=0.1)
    words = desk.plan().half_width
    assert words.startswith(f"half-width about {width:.0f} Elo by sampling alone ({per_model:.0f} ")


def test_a_panel_adds_its_further_runs(desk: Desk) -> None:
    desk.corpus = desk.corpus.model_copy(update={"panel": PANEL})
    assert desk.plan().n_calls == 2 * N_BATTLES + 2 * 10 * 2
    assert desk.plan(replicates=2).n_calls == 4 * N_BATTLES + 2 * 10
    assert desk.plan(replicates=3).n_calls == 6 * N_BATTLES
    desk.buy(N_BATTLES)
    assert (desk.plan().n_calls, desk.plan().n_stored) == (2 * 10 * 2, 2 * N_BATTLES)


def test_a_panel_is_planned_as_it_is_asked(desk: Desk) -> None:
    """A failed run of the panel alone is asked again only if its class is named."""
    desk.corpus = desk.corpus.model_copy(update={"panel": PANEL})
    desk.buy(N_BATTLES, "parse_error", n_runs=3)
    assert desk.plan().n_calls == 2 * N_BATTLES
    assert desk.plan().n_stored == 2 * 10 * 2
    alone = desk.plan(["reliability_panel"])
    assert (alone.n_calls, alone.n_stored) == (0, 2 * 10 * 3)
    desk.buyer.retried = {*RETRIED, "parse_error"}
    assert desk.plan().n_calls == 2 * N_BATTLES + 2 * 10 * 2


def test_only_what_is_selected_is_counted(desk: Desk) -> None:
    desk.corpus = desk.corpus.model_copy(update={"panel": PANEL})
    assert {name: desk.plan([name]).n_calls for name in ASKED} == {
        "verdicts": 2 * N_BATTLES,
        "reliability_panel": 2 * 10 * 3,
        "score_verdicts": 0,  # the judge is not asked in these forms
        "choice_verdicts": 0,
        "candidate_verdicts": 0,  # nothing was dropped
    }


def test_a_recorded_judge_is_asked_nothing(desk: Desk) -> None:
    recorded = JudgeDefinition(slug="r", display_name="R", family="f", kind="recorded")
    planned = plan_run(desk.corpus, [recorded], desk.tables, desk.buyer)
    assert planned == (N_BATTLES, (JudgePlan("r", "c|r", 0),))


# against a budget

TOKENS = TokenEstimate(900, 100, 5000, 2000, "by hand")
MANAGED = {
    "display_name": "V", "family": "f", "kind": "vllm", "model": "tiny",
    "vllm": {"tensor_parallel_size": 2, "max_model_len": 8192},
}  # fmt: skip


def test_a_server_of_our_own_takes_the_gpu_hours_of_its_last_run(desk: Desk) -> None:
    own = {"reader": "battles", "location": str(desk.corpus.location)}
    catalog = catalog_of(desk.folder, corpora={"c": own}, judges={"v": MANAGED})
    judge = catalog.judge("v")
    tables = ParquetTables(base_uri=str(desk.folder / "tables"))
    desk.publish("v", 20.0, 10)
    desk.folder.joinpath("tables", "verdicts", "c").mkdir(parents=True)
    VERDICTS.empty().to_parquet(desk.folder / "tables" / "verdicts" / "c" / "v.parquet")

    def line(instance: dg.DagsterInstance) -> str:
        how = {"instance": instance, "catalog": catalog, "tables": tables}
        (step,) = run_lineage(corpus="c", judges=["v"], dry_run=True, **how).plan
        assert step.n_calls == 2 * N_BATTLES
        return told(step)[2]

    with dg.instance_for_test() as instance:
        assert line(instance) == "price unknown: a server of your own"
        identity = judge_key(open_judge(judge, desk.corpus))
        for n_asked, seconds, key in ((90, 30.0, identity), (0, 0.0, identity), (9, 1.0, "other")):
            said = {"n_asked": n_asked, "seconds_asking": seconds, "judge_identity": key}
            made = dg.AssetMaterialization(
                "verdicts", partition=corpus_judge_key("elsewhere", "v"), metadata=said
            )
            instance.report_runless_asset_event(made)
        # 120 calls at 90 in 30 s are 40 s of two GPUs
        assert line(instance) == (
            "about 0.022 GPU hours on 2 GPUs, at 3.0 calls a second as in earlier runs"
        )


@pytest.mark.parametrize(
    ("calls", "rates", "words"),
    [
        ({"rubric": 72_000, "score": 0}, {"rubric": 2.0}, "about 10 GPU hours, at 2.0 calls"),
        ({"rubric": 3600, "score": 3600}, {"rubric": 1.0, "score": 4.0}, "about 1.2 GPU hours"),
        ({"rubric": 1, "score": 1}, {"rubric": 1.0}, "not known before the first run"),
    ],
)
def test_gpu_hours_add_up_over_forms(calls, rates, words: str) -> None:
    assert words in gpu_hours(JudgeDefinition(slug="v", **{**MANAGED, "vllm": None}), calls, rates)


STEP = JudgePlan("j", "c|j", 10, 2, TOKENS, 0.25, 1.5, "EUR")


@pytest.mark.parametrize(
    ("cap", "message"),
    [
        ("19calls", "about 20 calls would be needed, --budget allows 19"),
        ("1999tokens", "about 2,000 tokens would be needed, --budget allows 1,999"),
        ("0.49EUR", "about 0.50 EUR would be needed, --budget allows 0.49"),
        ("5USD", "5.00 USD, but judge 'j' has no price in USD; add 'price_per_million'"),
    ],
)
def test_what_is_expected_above_the_cap_is_refused(cap: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        require_covered([STEP, STEP], Budget.parse([cap]))


def test_what_is_expected_fits_and_is_told_in_full() -> None:
    require_covered([STEP, STEP], Budget.parse(["2ktokens", "0.50EUR", "20calls"]))
    require_covered([JudgePlan("j", "c|j", 0, 5)], Budget.parse(["1USD"]))  # needs no price
    assert told(STEP) == [
        "c|j: 10 calls (2 answered already)",
        "about 900 prompt and 100 completion tokens (by hand)",
        "about 0.25 EUR; without repairs and lost requests at most 1.50 EUR",
    ]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["10calls"], ""),
        (["10calls", "1000tokens", "0.25EUR"], ""),
        (["9calls"], "about 10 calls of this are about new models, where candidates.budget"),
        (["900tokens"], "stops the run at 900: raise candidates.budget of the corpus"),
        (["20calls", "0.20EUR"], "about 0.25 EUR of this are about new models"),
        (["5USD"], "the judge has no price in USD: nothing is asked about new models; state"),
    ],
)
def test_the_budget_for_candidates_is_held_against_what_they_take(texts, says):
    found = cut_short(STEP, texts)
    assert says in found
    assert bool(found) == bool(says)
    assert told(replace(STEP, cut_short=found))[3:] == ([found] if found else [])


# judges that are asked in several forms

ALL = ("rubric", "score", "choice")
N_CALLS = 2 * N_BATTLES  # of each form: two orders, or two texts, every one another


def test_calls_and_price_are_those_of_all_forms(desk: Desk) -> None:
    desk.probe()
    each = {form: desk.plan(asks=[form]) for form in ALL}
    assert {form: step.n_calls for form, step in each.items()} == dict.fromkeys(ALL, N_CALLS)
    whole = desk.plan(asks=list(ALL))
    assert whole.by_form == dict.fromkeys(ALL, N_CALLS)
    assert whole.n_calls == sum(whole.by_form.values())
    assert whole.money == pytest.approx(sum(step.money for step in each.values()))
    assert whole.most_money == pytest.approx(sum(step.most_money for step in each.values()))
    assert "(rubric 120, score 120, choice 120)" in told(whole)[0]
    assert told(desk.plan())[0] == "c|j: 120 calls"  # the rubric alone
    assert "score: " in whole.tokens.basis
    assert (each["score"].half_width, bool(whole.half_width)) == ("", True)
    require_covered([whole], Budget(calls=360))
    with pytest.raises(ValueError, match=r"about 360 calls would be needed, --budget allows 359"):
        require_covered([whole], Budget(calls=359))


def test_a_completion_in_several_battles_is_one_score_and_none_without_texts(desk: Desk) -> None:
    desk.probe()
    battles = desk.write(instruction="one question", completion_a="the same")
    # equal texts are one call whoever wrote them
    assert desk.plan(asks=["score"]).n_calls == 1 + battles["completion_b"].nunique()
    desk.write(completion_a=None, completion_b=None)
    assert desk.plan(asks=["score", "choice"]).n_calls == 0


def test_samples_are_counted_where_there_are_no_log_probabilities(desk: Desk) -> None:
    warm = {"max_tokens": 50, "temperature": 1.0}
    asked = {"asks": ["choice"], "decoding": warm}
    desk.probe(logs=False, alternatives=None)
    assert desk.plan(**asked).n_calls == 10 * N_CALLS
    assert desk.plan(**asked, choice={"samples": 4}).n_calls == 4 * N_CALLS
    desk.probe()
    assert desk.plan(**asked).n_calls == N_CALLS
    off = desk.plan(**asked, log_probabilities="off")
    assert off.n_calls == 10 * N_CALLS
    assert off.note == ""


@pytest.mark.parametrize("is_half_known", [True, False])
def test_an_endpoint_that_was_never_asked_says_what_may_come(desk, is_half_known):
    if is_half_known:  # by a program that knew the rubric alone
        desk.probe(alternatives=None)
    step = desk.plan(asks=["score", "choice"])
    assert step.n_calls == N_CALLS + N_CALLS
    assert "score: each question 10 times instead if the endpoint has no" in step.note
    assert any(step.note in line for line in told(step))


@pytest.mark.parametrize("has_scores", [True, False])
def test_what_came_with_the_corpus_is_not_asked_and_the_rest_is(desk, has_scores, monkeypatch):
    """Rubric scores are no choices; preferences without scores stand where choices would."""
    desk.probe()
    columns = {"battle_id": ["b0"], "judge": ["j"], "order": ["AB"], "replicate": [0]}
    columns |= {"status": ["ok"], "recorded_outcome": [1.0]}
    columns |= {column: [5.0 if has_scores else None] for column in SCORE_COLUMNS}
    came = pd.DataFrame(columns).reindex(columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES)
    desk.corpus = desk.corpus.model_copy(update={"panel": PANEL})
    monkeypatch.setattr(
        "pipelines.commands.plan.read_corpus",
        lambda corpus: read_corpus(corpus)._replace(verdicts=came),
    )
    step = desk.plan(asks=list(ALL))
    expected = {"score": N_CALLS} | ({"choice": N_CALLS} if has_scores else {})
    assert step.by_form == expected
    assert step.n_calls == sum(expected.values())


@pytest.mark.parametrize("further", [["--dry-run"], ["--budget", "5calls"]])
def test_a_judge_without_the_rubric_is_refused_before_anything_is_bought(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], further
) -> None:
    monkeypatch.setenv("JUDGELINE_CONFIG", str(desk.folder))
    named = {name: value for name, value in JUDGE.items() if name != "slug"}
    files = {
        "judges": {"j": {**named, "asks": ["choice"]}},
        "corpora": {"c": {"reader": "battles", "location": desk.corpus.location}},
    }
    for name, entries in files.items():
        (desk.folder / f"{name}.yaml").write_text(json.dumps(entries), encoding="utf-8")
    assert main(["run", "--corpus", "c", "--judge", "j", *further]) == 1
    said = " ".join("".join(capsys.readouterr()).split())
    assert "'j' is not asked for 'rubric' (asks: [choice]), so nothing can rest on it" in said
    assert "--select 'choice_verdicts+'" in said
    assert not (desk.folder / "verdicts").exists()
