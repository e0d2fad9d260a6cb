"""The judges that stand in the shipped configuration, and verdicts that came with a corpus."""

import io
import json

import pandas as pd
import pytest
import yaml
from rich.console import Console

from judgeline.paths import ROOT
from judgeline.verdict.identity import slug
from pipelines.commands.run import run_lineage
from resources.config.catalog import Catalog
from resources.config.judges import load_judges

EXAMPLES = ROOT / "config" / "examples"
PUBLISHED = (
    "DeepSeek-V3.2", "Gemma4-26B-A4B", "Qwen3.5-27B", "GPT-OSS-120B", "Gemma4-E4B",
    "Llama-3.3-70B", "GPT-OSS-20B", "Qwen3-32B",
)  # fmt: skip
"""The judges of the released Soft-Elo annotations of LMArena 100k, by their names there."""


def test_the_eight_judges_of_the_paper_are_ready_under_their_published_names() -> None:
    judges = load_judges(EXAMPLES / "judges.yaml")
    for name in PUBLISHED:
        assert judges[slug(name)].kind in ("openai", "vllm")
        assert judges[slug(name)].model
    corpora = yaml.safe_load((EXAMPLES / "corpora.yaml").read_text(encoding="utf-8"))
    assert set(corpora["softelo-annotations"]["judges"]) == set(map(slug, PUBLISHED))


@pytest.mark.parametrize("dry_run", [True, False])
def test_verdicts_that_came_with_a_corpus_are_not_asked_for(tmp_path, monkeypatch, dry_run) -> None:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    rest = dict.fromkeys(("helpfulness", "factuality", "completeness", "clarity", "fluency"), 5)
    rows = [
        {
            "battle_id": f"r{i}", "source_dataset": "made", "judge": "GPT-OSS-20B",
            "original_question_id_hash": f"q{i}", "model_a": "x", "model_b": "y",
            "human_pref": i % 2, "judge_pref": i % 2,
            "scores_a": json.dumps({"adherence": 8 - 6 * (i % 2), **rest}),
            "scores_b": json.dumps({"adherence": 5, **rest}), "parse_error": "False",
        }
        for i in range(8)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "made.csv", index=False)
    corpus = {"display_name": "Made", "reader": "softelo-annotations"}
    corpora = yaml.safe_dump({"made": {**corpus, "location": str(tmp_path / "made.csv")}})
    (tmp_path / "corpora.yaml").write_text(corpora, encoding="utf-8")
    catalog = Catalog(
        corpora_file=str(tmp_path / "corpora.yaml"),
        judges_file=str(EXAMPLES / "judges.yaml"),
    )
    out = io.StringIO()
    outcome = run_lineage(
        corpus="made",
        judges=["gpt-oss-20b"],  # of kind vllm: a server would be started
        select=["+verdicts"],
        dry_run=dry_run,
        catalog=catalog,
        console=Console(file=out, width=200),
    )
    assert outcome.exit_code == 0, out.getvalue()
    if dry_run:
        assert "made|gpt-oss-20b: no calls" in out.getvalue()
    else:
        assert "verdicts (8 rows)" in out.getvalue()
