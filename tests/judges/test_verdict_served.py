"""The verdict store under a judge behind an endpoint: no second request, and no key in a file."""

from pathlib import Path

import pandas as pd
import pytest
from fault_server import KEY, FaultServer, serving
from upath import UPath

from resources.config.paths import ROOT
from resources.judges.annotation import annotate
from resources.judges.buying import Buyer
from resources.judges.catalog import read_template
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge
from resources.judges.live.troubles import RetryPolicy
from resources.store.verdicts import VerdictStore

TEMPLATE = read_template(ROOT / "config" / "prompts" / "fenced-rubric.txt")
BATTLES = pd.DataFrame(
    {
        "battle_id": [f"b{i}" for i in range(30)],
        "model_a": "x",
        "model_b": "y",
        "instruction": [f"question {i}" for i in range(30)],
        "completion_a": [f"first answer {i}" for i in range(30)],
        "completion_b": [f"second answer {i}" for i in range(30)],
    }
)


def bought(server: FaultServer, folder: Path, template: str = TEMPLATE) -> pd.DataFrame:
    fields = ServedFields(
        model="tiny", timeout_s=2.0, concurrency=4, endpoint_name="here", log_probabilities="auto"
    )
    quick = RetryPolicy(attempts=2, base_s=0.002, cap_s=0.01)
    endpoint = Endpoint(server.url, KEY)
    judge = ServedJudge("j", fields, template, endpoint, folder / "endpoints", quick)
    buyer = Buyer(VerdictStore(UPath(folder / "verdicts")))
    return annotate(judge, BATTLES, slug="j", buyer=buyer)


def test_a_second_run_sends_nothing_and_another_prompt_sends_all(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        first = bought(server, tmp_path)
        assert set(first["status"]) == {"ok"}
        assert len(server.presentations) == 60
        pd.testing.assert_frame_equal(bought(server, tmp_path), first)
        assert len(server.presentations) == 60
        other = bought(server, tmp_path, TEMPLATE + "\nBe strict.")
        assert len(server.presentations) == 120
    assert not set(other["identity"]) & set(first["identity"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_what_came_before_an_endpoint_died_is_kept(tmp_path: Path) -> None:
    def dies(texts: tuple[str, ...], n: int) -> str | None:
        return "500" if int(texts[0].split()[-1]) >= 10 else None

    with serving(FaultServer(dies)) as server, pytest.raises(EndpointError):
        bought(server, tmp_path)
    with serving(FaultServer()) as server:
        again = bought(server, tmp_path)
        assert len(server.presentations) == 40
    assert set(again["status"]) == {"ok"}
