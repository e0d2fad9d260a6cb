"""Asks a judge about battles of a notebook: the price first, a cap, and nothing bought twice."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from upath import UPath

from judgeline.io.outcome_codes import ArgumentError
from judgeline.io.verdict_tables import battles_given
from judgeline.judges.annotation import annotate
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer, paced
from judgeline.judges.definition import NEVER_SHOWN, JudgeDefinition
from judgeline.judges.forms.registered import FormName
from judgeline.judges.judge_plan import JudgePlan, expect_calls, plan_of, told
from judgeline.judges.managed.options import Hosting
from judgeline.judges.opening import open_served
from judgeline.judges.options import checked
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.paths import verdicts_uri

NO_CAP = "none"
"""Budget of a caller who wants no cap."""

_TEXTS = ("instruction", "completion_a", "completion_b")


def ask_judge(
    battles: pd.DataFrame,
    judge: Mapping[str, Any],
    *,
    form: FormName,
    budget: str | Sequence[str] | None,
    n_replicates: int,
    store: str | Path | None,
    tell: Callable[[str], None] | None,
) -> pd.DataFrame:
    """Return a judge's verdicts; `judgeline.ask` says what the arguments are."""
    tell = tell or _to_terminal
    declared, table = _declared(judge, form), battles_given(battles, _TEXTS)
    buyer = Buyer(
        VerdictStore(UPath(store or verdicts_uri())),
        _capped(budget),
        on_wait=lambda: tell(f"{declared.slug} waits: another process is asking it"),
    )
    with Hosting(tell) as hosting:
        opened = open_served(declared, form, hosting)
        calls = expect_calls(
            declared, form, lambda: opened, table, buyer, n_replicates=n_replicates
        )
        plan = plan_of(declared, declared.slug, {form: calls})
        tell("; ".join(told(plan)))
        _require_cap(declared, plan, budget)
        return annotate(
            opened,
            table,
            slug=declared.slug,
            n_replicates=n_replicates,
            on_progress=paced(declared.slug, declared.price_per_million, tell),
            buyer=buyer,
        )


def _declared(judge: Mapping[str, Any], form: FormName) -> JudgeDefinition:
    """Return the judge of some keys of `judges.yaml`; its slug is that of its model by default."""
    if not isinstance(judge, Mapping):
        raise ArgumentError(
            f"the judge is {judge!r}; expected a mapping with the keys of judges.yaml, such as "
            "{'model': 'gpt-4.1', 'price_per_million': ...}",
            "judge",
        )
    model = str(judge.get("model", "judge"))
    slug = re.sub(r"[^a-z0-9._-]+", "-", model.lower()).strip("-._") or "judge"
    usual = {"slug": slug, "display_name": model, "family": "none", "kind": "openai"}
    declared = checked(
        JudgeDefinition,
        {**usual, "asks": [form], **judge},
        named=f"judge {judge.get('slug', slug)!r}",
        never_shown=NEVER_SHOWN,
    )
    if declared.kind not in ("openai", "vllm"):
        raise ArgumentError(
            f"a judge of kind {declared.kind!r} cannot be asked here; expected 'openai' or 'vllm'",
            "judge",
        )
    return declared


def _capped(budget: str | Sequence[str] | None) -> Budget:
    if budget is None or budget == NO_CAP:
        return Budget()
    return Budget.parse(budget.split() if isinstance(budget, str) else list(budget))


def _require_cap(declared: JudgeDefinition, plan: JudgePlan, budget: object) -> None:
    """Check that somebody capped calls that may cost money."""
    if budget is None and plan.n_calls and declared.kind == "openai":
        raise ArgumentError(
            f"no budget caps these calls. {'; '.join(told(plan))}. Pass budget, such as "
            f"'{plan.n_calls}calls' or '5USD', or '{NO_CAP}' for no cap; nothing was asked",
            "budget",
        )


def _to_terminal(line: str) -> None:
    sys.stderr.write(f"{line}\n")
