"""The judges that a person has configured, as `judges.yaml` declares them."""

from judgeline.judges.definition import NEVER_SHOWN, JudgeDefinition
from judgeline.judges.opening import require_prompts
from resources.config.entries import EntryKind

KIND = EntryKind(
    "judge",
    "judges",
    "display_name, family and kind",
    JudgeDefinition,
    NEVER_SHOWN,
    verify=require_prompts,
)

load_judges = KIND.load
