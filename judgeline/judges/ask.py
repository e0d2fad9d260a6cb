"""Asks a judge about battles of a notebook: the price first, a cap, and nothing bought twice."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from upath import UPath

from judgeline.io.verdict_tables import battles_given
from judgeline.judges.annotation import annotate
from judgeline.judges.budget import Budget, require_price
from judgeline.judges.buying import Buyer, models_named, paced, retried_with
from judgeline.judges.definition import NEVER_SHOWN, JudgeDefinition
from judgeline.judges.forms.registered import FORMS, FormName
from judgeline.judges.judge_plan import JudgePlan, expect_calls, plan_of, told
from judgeline.judges.managed.options import Hosting
from judgeline.judges.opening import open_served
from judgeline.judges.options import checked
from judgeline.judges.store.keyed import is_local
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.paths import verdicts_uri
from judgeline.suggest import ArgumentError

NO_CAP = "none"
"""Budget of a caller who wants no cap."""

_TEXTS = ("instruction", "completion_a", "completion_b")
_BLANK_WITHIN = re.compile(r"(?<=[\dkM])\s+(?=[A-Za-z])")  # 5 USD


def ask_judge(
    battles: pd.DataFrame,
    judge: Mapping[str, Any],
    *,
    form: FormName,
    budget: str | Sequence[str] | None,
    n_replicates: int | None,
    retry: Sequence[str],
    store: str | Path | None,
    tell: Callable[[str], None] | None,
) -> pd.DataFrame:
    """Return a judge's verdicts; `judgeline.ask` says what the arguments are."""
    tell = tell or _to_terminal
    declared, table, cap = _declared(judge, form), _with_texts(battles), _capped(budget)
    n_times = declared.replicates if n_replicates is None else n_replicates
    if not isinstance(n_times, int) or n_times < 1:
        raise ArgumentError(
            f"n_replicates is {n_times!r}; expected a whole number, 1 or more", "n_replicates"
        )
    require_price(declared.slug, declared.price_per_million, cap)
    place = UPath(os.path.expanduser(store or verdicts_uri()))
    buyer = Buyer(
        VerdictStore(place),
        cap,
        retried_with(retry),
        on_wait=lambda: tell(f"{declared.slug} waits: another process is asking it"),
    )
    with Hosting(tell, warn=tell) as hosting:
        beside = Path(place.path) if store and is_local(place) else None
        opened = open_served(declared, form, hosting, secret_in=beside)
        calls = expect_calls(declared, form, lambda: opened, table, buyer, n_replicates=n_times)
        plan = plan_of(declared, declared.slug, {form: calls})
        tell("; ".join(told(plan)))
        _require_cap(declared, plan, budget)
        with _in_python():
            verdicts = annotate(
                opened,
                table,
                slug=declared.slug,
                n_replicates=n_times,
                on_progress=paced(declared.slug, declared.price_per_million, tell),
                buyer=buyer,
            )
    for file in buyer.account.damaged:
        tell(f"{file} is damaged; what it held was asked for again")
    if note := models_named(verdicts)[1]:
        tell(note)
    return verdicts


@contextlib.contextmanager
def _in_python() -> Iterator[None]:
    """Have remedies of a failed purchase name the argument `retry`, not the command's option."""
    try:
        yield
    except RuntimeError as error:
        error.args = (re.sub(r"--retry (\w+)", r"retry='\1'", str(error)),)
        raise


def _with_texts(battles: pd.DataFrame) -> pd.DataFrame:
    """Return battles of two models each, with their texts; ArgumentError for any other.

    An empty text is one: a model that answered nothing.
    """
    table = battles_given(battles, _TEXTS)
    if (alone := table["model_a"].eq(table["model_b"])).any():
        first = table.loc[alone, ["battle_id", "model_a"]].iloc[0]
        raise ArgumentError(
            f"{int(alone.sum())} of {len(table)} battles compare a model with itself, the first is "
            f"{first['battle_id']!r} ({first['model_a']!r}); leave them out",
            "battles",
        )
    for name in _TEXTS:
        if (odd := ~table[name].map(lambda text: isinstance(text, str))).any():
            first = table.loc[odd, "battle_id"].iloc[0]
            raise ArgumentError(
                f"{name} is no text in {int(odd.sum())} of {len(table)} battles, the first is "
                f"{first!r}; fill it in, or leave these battles out",
                "battles",
            )
    return table


def _declared(judge: Mapping[str, Any], form: FormName) -> JudgeDefinition:
    """Return the judge of some keys of `judges.yaml`; its slug is that of its model by default."""
    if not isinstance(judge, Mapping):
        raise ArgumentError(
            f"the judge is {judge!r}; expected a mapping with the keys of judges.yaml, such as "
            "{'model': 'gpt-4.1', 'price_per_million': ...}",
            "judge",
        )
    if form not in FORMS:
        raise ArgumentError(f"no form {form!r}; there are {', '.join(FORMS)}", "form")
    kind = judge.get("kind", "openai")
    if kind not in ("openai", "vllm"):
        raise ArgumentError(
            f"a judge of kind {kind!r} cannot be asked here; expected 'openai' or 'vllm'", "judge"
        )
    if form not in judge.get("asks", [form]):
        raise ArgumentError(f"form is {form!r}, which the judge's 'asks' leaves out", "form")
    model = str(judge.get("model", "judge"))
    slug = re.sub(r"[^a-z0-9._-]+", "-", model.lower()).strip("-._") or "judge"
    usual = {"slug": slug, "display_name": model, "family": "none", "kind": "openai"}
    return checked(
        JudgeDefinition,
        {**usual, "asks": [form], **judge},
        named=f"judge {judge.get('slug', slug)!r}",
        never_shown=NEVER_SHOWN,
    )


def _capped(budget: str | Sequence[str] | None) -> Budget:
    if budget is None or budget == NO_CAP:
        return Budget()
    if isinstance(budget, str):
        budget = _BLANK_WITHIN.sub("", budget).split()
    if not budget or not isinstance(budget, list | tuple):
        raise ArgumentError(
            f"budget is {budget!r}, which caps nothing; write such as '500calls' or '5USD', or "
            f"'{NO_CAP}' for no cap",
            "budget",
        )
    return Budget.parse(list(budget))


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
