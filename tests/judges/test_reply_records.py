"""What a server says about an answer: which model gave it, or why there is none."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from answering import answered
from batch_server import BatchServer
from batch_server import answered as batch_line
from fault_server import KEY, USAGE, Body, FaultServer, completion, error, judged, serving
from starlette.responses import JSONResponse, Response
from test_batch_judge import batch_judge
from test_served_client import QUICK, TEMPLATE, always, judge, presentation
from upath import UPath

from assets.judging import assets as judging
from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from pipelines.commands.verdicts import explain_battle
from resources.config.corpora import load_corpora
from resources.config.judges import load_judges
from resources.config.paths import ROOT
from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.buying import RETRIED, Buyer
from resources.judges.calls import judge_key
from resources.judges.catalog import open_judge
from resources.judges.ledger import Ledger
from resources.judges.live.endpoint import Endpoint, EndpointError, OutOfReachError
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge
from resources.store.verdicts import SCHEMA, VerdictStore

BATTLES = pd.DataFrame(
    {
        "battle_id": ["b0", "b1"],
        "model_a": "x",
        "model_b": "y",
        "instruction": ["question 0", "question 1"],
        "completion_a": ["one", "two"],
        "completion_b": ["eins", "zwei"],
    }
)
SAID = ["reply_model", "system_fingerprint", "said"]
STATED = {"model": "tiny-2024-07-18", "system_fingerprint": "fp_1"}


def stating(body: Body, **stated: Any) -> Body:
    return {**completion(body, judged(body)), **stated}


def replying(**stated: Any) -> FaultServer:
    def reply(server: FaultServer, body: Body) -> Response:
        return Response(json.dumps(stating(body, **stated)), media_type="application/json")

    return FaultServer(always("stated"), extra={"stated": reply})


def test_the_model_that_answered_is_stored_with_every_verdict(tmp_path: Path) -> None:
    store = VerdictStore(UPath(tmp_path / "verdicts"))
    with serving(replying(**STATED)) as server:
        asked = judge(server, tmp_path / "endpoints")
        first = annotate(asked, BATTLES, slug="j", buyer=Buyer(store))
        again = annotate(asked, BATTLES, slug="j", buyer=Buyer(store))
    pd.testing.assert_frame_equal(first, again)
    assert set(first["reply_model"]) == {"tiny-2024-07-18"}
    assert set(first["system_fingerprint"]) == {"fp_1"}
    assert first["said"].isna().all()


@pytest.mark.parametrize("model", [None, "", 7, ["tiny"]])
def test_a_reply_that_names_no_model_leaves_it_null(model: Any, tmp_path: Path) -> None:
    with serving(replying(model=model)) as server:
        (answer,) = answered(judge(server, tmp_path), [presentation(0)])
    assert answer.failure is None
    assert (answer.reply_model, answer.system_fingerprint) == (None, None)


def test_a_name_is_stored_inert_short_and_without_the_key(tmp_path: Path) -> None:
    with serving(replying(model=f"m\x1b[31m{KEY}\ud800" + "x" * 900)) as server:
        (answer,) = answered(judge(server, tmp_path), [presentation(0)])
    assert answer.reply_model is not None
    assert answer.reply_model.startswith("m\N{REPLACEMENT CHARACTER}[31m[key]")
    assert len(answer.reply_model) == 300


def test_a_key_as_short_as_a_word_is_not_cut_out_of_a_name(tmp_path: Path) -> None:
    with serving(replying(model="tiny", system_fingerprint="fp_tin")) as server:
        fields = ServedFields(model="tiny", timeout_s=2.0, expect_model="exact")
        asked = ServedJudge("j", fields, TEMPLATE, Endpoint(server.url, "tin"), tmp_path, QUICK)
        (answer,) = answered(asked, [presentation(0)])
    assert answer.failure is None
    assert (answer.reply_model, answer.system_fingerprint) == ("tiny", "fp_tin")


def test_batches_store_the_model_and_the_reason_too(tmp_path: Path) -> None:
    def line(body: Body) -> Body:
        if "question 0" in body["messages"][0]["content"]:
            return batch_line(body) | {
                "response": {
                    "status_code": 400,
                    "request_id": "r",
                    "body": {"error": {"message": f"no such luck, {KEY}", "code": "odd"}},
                }
            }
        whole = batch_line(body)
        whole["response"]["body"] |= STATED
        return whole

    with serving(BatchServer(line=line)) as server:
        failed, fine = answered(batch_judge(server, tmp_path), [presentation(0), presentation(1)])
    assert (fine.reply_model, fine.system_fingerprint) == ("tiny-2024-07-18", "fp_1")
    assert (failed.failure, failed.said) == ("transport", "HTTP 400: odd: no such luck, [key]")


FAILING: dict[str, tuple[Callable[[FaultServer, Body], Any], str]] = {
    "400": (lambda s, b: error(400, f"no such luck {KEY}"), "HTTP 400: no such luck [key]"),
    "422": (lambda s, b: error(422, "bad\x1b[2J field"), "HTTP 422: bad\N{REPLACEMENT CHARACTER}"),
    "500": (lambda s, b: error(500, "oops"), "HTTP 500: oops"),
    "long": (lambda s, b: error(400, "y" * 1000), "HTTP 400: yyy"),
    "prose": (
        lambda s, b: JSONResponse(completion(b, "Response 1 is better.")),
        "the answer starts with",
    ),
    "length": (
        lambda s, b: JSONResponse(completion(b, "{", "length")),
        "the answer reached the limit of its length",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_why_an_answer_failed_is_stored_in_the_servers_words(name: str, tmp_path: Path) -> None:
    reply, words = FAILING[name]
    store = VerdictStore(UPath(tmp_path / "verdicts"))
    with serving(FaultServer(always("odd"), extra={"odd": reply})) as server:
        asked = judge(server, tmp_path / "endpoints")
        verdicts = annotate(asked, BATTLES, slug="j", buyer=Buyer(store))
    assert verdicts["said"].str.startswith(words).all()
    assert verdicts["said"].str.len().max() <= 300
    assert not [file for file in tmp_path.rglob("*.parquet") if KEY.encode() in file.read_bytes()]


# stores and tables from before


def test_shards_without_these_columns_are_read_as_null_and_merged(tmp_path: Path) -> None:
    store = VerdictStore(UPath(tmp_path / "verdicts"))
    row = dict.fromkeys(SCHEMA.names) | {"identity": "a", "status": "ok", "answer": "{}"}
    old = [name for name in SCHEMA.names if name not in SAID]
    written = pa.Table.from_pylist([row | {"answered_at": datetime.now(UTC)}], SCHEMA).select(old)
    folder = tmp_path / "verdicts" / "key"
    folder.mkdir(parents=True)
    pq.write_table(written, folder / "1-old.parquet")
    store.append("key", [row | {"identity": "b", "reply_model": "m", "said": "no"}])
    for _ in range(2):
        found, scan = store.find("key", ["a", "b"])
        assert scan.damaged == ()
        assert found.set_index("identity")["reply_model"].map(str).to_dict() == {
            "a": "nan",
            "b": "m",
        }
        store.compact("key")


def test_a_stored_answer_of_an_older_version_is_not_bought_again(tmp_path: Path) -> None:
    store = VerdictStore(UPath(tmp_path / "verdicts"))
    with serving(FaultServer()) as server:
        asked = judge(server, tmp_path / "endpoints")
        annotate(asked, BATTLES, slug="j", buyer=Buyer(store))
        for shard in (tmp_path / "verdicts" / judge_key(asked)).glob("*.parquet"):
            pq.write_table(pq.read_table(shard).drop_columns(SAID), shard)
        n_asked = len(server.presentations)
        again = annotate(asked, BATTLES, slug="j", buyer=Buyer(store))
        assert len(server.presentations) == n_asked == 4
    assert set(again["status"]) == {"ok"}
    assert again["reply_model"].isna().all()


# which model may answer


@pytest.mark.parametrize(
    ("rule", "named", "failure"),
    [
        ("any", "gpt-3.5-turbo-IMPOSTOR", None),
        ("any", None, None),
        ("prefix", "tiny", None),
        ("prefix", "tiny-2024-07-18", None),
        ("prefix", "gpt-3.5-turbo-IMPOSTOR", "other_model"),
        ("prefix", None, "other_model"),
        ("exact", "tiny", None),
        ("exact", "tiny-2024-07-18", "other_model"),
        ("exact", None, "other_model"),
    ],
)
@pytest.mark.parametrize("mode", ["live", "batch"])
def test_an_answer_of_another_model_is_a_failure_of_its_own(
    mode: str, rule: str, named: str | None, failure: str | None, tmp_path: Path
) -> None:
    def line(body: Body) -> Body:
        whole = batch_line(body)
        whole["response"]["body"]["model"] = named
        return whole

    if mode == "live":
        with serving(replying(model=named)) as server:
            asked: Any = judge(server, tmp_path, expect_model=rule)
            (answer,) = answered(asked, [presentation(0)])
    else:
        with serving(BatchServer(line=line)) as server:
            asked = batch_judge(server, tmp_path, expect_model=rule)
            (answer,) = answered(asked, [presentation(0)])
    assert answer.failure == failure
    assert answer.prompt_tokens == USAGE[0]  # it was paid for
    if failure:
        assert [word in str(answer.said) for word in ("tiny", rule)] == [True, True]


def test_an_answer_of_another_model_is_charged_stored_and_not_bought_again(tmp_path: Path) -> None:
    store = VerdictStore(UPath(tmp_path / "verdicts"))
    with serving(replying(model="other")) as server:
        asked = judge(server, tmp_path / "endpoints", expect_model="exact")
        for n_asked, retried in ((4, RETRIED), (0, RETRIED), (4, {*RETRIED, "other_model"})):
            buyer = Buyer(store, Budget.parse(["100calls"]), retried)
            verdicts = annotate(asked, BATTLES, slug="j", buyer=buyer)
            assert set(verdicts["status"]) == {"other_model"}
            assert (buyer.account.n_asked, buyer.account.charged.calls) == (n_asked, n_asked)
    assert verdicts[list(SCORE_COLUMNS)].isna().all(axis=None)
    assert verdicts["reply_model"].eq("other").all()


def test_a_judge_whose_answers_are_all_of_another_model_stops(tmp_path: Path) -> None:
    with serving(replying(model="other")) as server:
        asked = judge(server, tmp_path, expect_model="exact", concurrency=2)
        with pytest.raises(EndpointError, match=r"'other'.*'expect_model'") as caught:
            answered(asked, [presentation(n) for n in range(300)])
        assert not isinstance(caught.value, OutOfReachError)
        assert len(server.presentations) < 300


# what is no answer


def called(finish: str, text: str | None) -> Callable[[FaultServer, Body], Any]:
    def reply(server: FaultServer, body: Body) -> JSONResponse:
        whole = completion(body, text, finish)
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        whole["choices"][0]["message"]["tool_calls"] = [call]
        return JSONResponse(whole)

    return reply


@pytest.mark.parametrize("finish", ["tool_calls", "function_call", "stop"])
def test_an_answer_that_calls_a_tool_is_a_failure_of_its_own(finish: str, tmp_path: Path) -> None:
    extra = {"odd": called(finish, None)}
    with serving(FaultServer(always("odd"), extra=extra)) as server:
        (answer,) = answered(judge(server, tmp_path), [presentation(0)])
        assert len(server.presentations) == 1
    assert (answer.failure, answer.prompt_tokens) == ("tool_call", USAGE[0])
    assert "tool" in str(answer.said)


def test_many_requests_that_a_server_turns_down_end_with_advice_that_fits(tmp_path: Path) -> None:
    extra = {"odd": lambda s, b: error(400, "bad request, no idea")}
    with (
        serving(FaultServer(always("odd"), extra=extra)) as server,
        pytest.raises(EndpointError, match=r"no idea.*'model', 'base_url'") as caught,
    ):
        answered(judge(server, tmp_path), [presentation(n) for n in range(60)])
    assert not isinstance(caught.value, OutOfReachError)


# what is said about failures


ADVICE: dict[str, tuple[Callable[[FaultServer, Body], Any], str, str]] = {
    "400": (
        lambda s, b: error(400, "bad request, no idea"),
        "HTTP 400: bad request, no idea",
        "correct the judge's 'model', 'base_url' or options",
    ),
    "422": (lambda s, b: error(422, "odd field"), "HTTP 422: odd field", "'base_url' or options"),
    "500": (lambda s, b: error(500, "oops"), "HTTP 500: oops", "see whether the endpoint is up"),
    "length": (
        lambda s, b: JSONResponse(completion(b, "{", "length")),
        "the limit of its length",
        "raise 'decoding.max_tokens'",
    ),
    "tool": (called("tool_calls", None), "called a tool", "turn them off"),
    "context": (
        lambda s, b: error(400, "maximum context length is 9"),
        "context length is 9",
        "a longer context",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_check_and_ledger_show_the_words_and_advice_that_fits(name: str, tmp_path: Path) -> None:
    reply, words, advice = ADVICE[name]
    told = []
    with serving(FaultServer(always("odd"), extra={"odd": reply})) as server:
        asked = judge(server, tmp_path / "endpoints")
        buyer = Buyer(VerdictStore(UPath(tmp_path / "verdicts")))
        ledger = Ledger("j", None)
        verdicts = annotate(
            asked,
            BATTLES,
            slug="j",
            buyer=buyer,
            on_progress=lambda account: told.append(ledger.told(account)),
        )
    check = judging.nearly_all_answers_parse(verdicts)
    assert words in str(check.description)
    assert advice in str(check.description)
    assert words in told[-1]
    (reason,) = ledger.entries(buyer.account, asked)["failure_reasons"]
    assert (words in reason["said"], reason["answers"]) == (True, 4)


def test_a_table_of_an_older_version_is_checked_as_before() -> None:
    told = {**dict.fromkeys(VERDICT_DTYPES), "judge": "j", "replicate": 0, "identity": "i"}
    rows = [told | {"battle_id": "b", "order": o, "status": "transport"} for o in ("AB", "BA")]
    old = pd.DataFrame(rows).astype(VERDICT_DTYPES).drop(columns=SAID)
    assert judging.verdicts_are_well_formed(old).passed
    assert judging.answers_name_one_model(old).passed
    assert "transport 2" in str(judging.nearly_all_answers_parse(old).description)


@pytest.mark.parametrize("name", ["reply_model", "system_fingerprint"])
def test_a_second_model_among_the_answers_warns(name: str, tmp_path: Path) -> None:
    def reply(server: FaultServer, body: Body) -> Response:
        stated = {"model": "tiny-1", "system_fingerprint": "fp_1"}
        if "question 1" in body["messages"][0]["content"]:
            stated[{"reply_model": "model"}.get(name, name)] = "IMPOSTOR"
        return JSONResponse(stating(body, **stated))

    with serving(FaultServer(always("odd"), extra={"odd": reply})) as server:
        verdicts = annotate(judge(server, tmp_path), BATTLES, slug="j")
    assert verdicts["status"].eq("ok").all()
    check = judging.answers_name_one_model(verdicts)
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "IMPOSTOR 2" in str(check.description)
    assert "expect_model" in str(check.description)
    assert judging.answers_name_one_model(verdicts[verdicts["battle_id"].eq("b0")]).passed


def test_words_and_model_of_an_answer_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "odd" if texts[0] == "question 0" else None

    extra = {"odd": lambda s, b: error(400, "bad request, no idea")}
    with serving(FaultServer(fault, extra=extra)) as server:
        entry = {"display_name": "J", "family": "f", "kind": "openai", "model": "tiny"}
        config = tmp_path / "config"
        config.mkdir()
        (config / "prompts").symlink_to(ROOT / "config" / "prompts")
        (config / "corpora.yaml").symlink_to(ROOT / "config" / "corpora.yaml")
        (config / "judges.yaml").write_text(yaml.safe_dump({"j": entry | {"base_url": server.url}}))
        monkeypatch.setenv("JUDGELINE_CONFIG", str(config))
        monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
        folder = tmp_path / "tables" / "sampled_battles"
        folder.mkdir(parents=True)
        BATTLES.to_parquet(folder / "arena.parquet")
        opened = open_judge(load_judges()["j"], load_corpora()["arena"])
        annotate(opened, BATTLES, slug="j", buyer=Buyer(VerdictStore(UPath(tmp_path / "verdicts"))))
    _, failed = explain_battle("b0", "j", "arena")
    _, fine = explain_battle("b1", "j", "arena")
    assert {(fate, "HTTP 400: bad request, no idea" in why) for *_, fate, why in failed} == {
        ("miss", True)
    }
    assert {(fate, why) for *_, fate, why in fine} == {("hit", "answered by tiny")}
