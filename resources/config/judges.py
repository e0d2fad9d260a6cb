"""The judges that a person has configured, as `judges.yaml` declares them."""

from judgeline.judges.definition import JudgeDefinition
from resources.config.entries import EntryKind

# Somebody may have put the key itself there.
_NEVER_SHOWN = {"api_key_env", "base_url", "vllm.extra_args", "headers", "query", "extra_body"}

KIND = EntryKind("judge", "judges", "display_name, family and kind", JudgeDefinition, _NEVER_SHOWN)

load_judges = KIND.load
