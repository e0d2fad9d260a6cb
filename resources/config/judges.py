"""The judges that a person has configured, as `judges.yaml` declares them."""

import re
from typing import Any

from judgeline.judges.definition import NEVER_SHOWN, JudgeDefinition
from judgeline.judges.opening import require_prompts
from resources.config.entries import EntryKind

_DATED = re.compile(r".*[-@](\d{4}-\d\d-\d\d|\d\d-\d\d(-\d{4})?|\d{8}|\d{6}|\d{4})")


def _usual(fields: dict[str, Any]) -> dict[str, Any]:
    """Return that replies have to name the model, where its name is dated: it is no alias."""
    is_dated = _DATED.fullmatch(str(fields.get("model", "")))
    return {"expect_model": "prefix"} if fields.get("kind") == "openai" and is_dated else {}


KIND = EntryKind(
    "judge",
    "judges",
    "display_name, family and kind",
    JudgeDefinition,
    NEVER_SHOWN,
    usual=_usual,
    verify=require_prompts,
)

load_judges = KIND.load
