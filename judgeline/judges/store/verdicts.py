"""Verdict store: bought answers by judge and identity of the call; none is ever changed."""

from collections.abc import Collection

import pandas as pd
import pyarrow as pa

from judgeline.judges.store.keyed import NOT_THERE, KeyedStore, Scan

_ROW = (
    "identity status answered_at answer failure log_probabilities prompt_tokens completion_tokens "
    "judge battle_id order replicate parts reply_model system_fingerprint said reasoning"
)
_COUNTS = ("prompt_tokens", "completion_tokens", "replicate")
_TYPES = dict.fromkeys(_COUNTS, pa.int64()) | {"answered_at": pa.timestamp("us", tz="UTC")}
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _ROW.split()])
"""A row is one answer. `status` is how it was read when it came; `judge`, `battle_id` and `order`
are what the call was made for first, which its identity does not hold; `parts` is a JSON object
of what it does hold, long texts by their hash. `reply_model`, `system_fingerprint` and `said` are
the server's words about the answer, `reasoning` the judge's thoughts before it."""

_CALL = ("judge", "order", "replicate", "parts")
ANSWER = tuple(name for name in _ROW.split() if name not in _CALL)
"""Columns that make an answer, and say which of several counts."""

_ATTEMPT = ("identity", "status", "answered_at")


class VerdictStore(KeyedStore):
    """The answers under one folder or URI; the key is that of the judge."""

    schema, row = SCHEMA, _ATTEMPT
    later = frozenset({"reply_model", "system_fingerprint", "said", "reasoning"})
    what, variable = "verdicts", "JUDGELINE_VERDICTS"

    def find(self, judge_key: str, identities: Collection[str]) -> tuple[pd.DataFrame, Scan]:
        """Return a row per answered call with its number of attempts, and the scan."""
        scan = self.scan(judge_key, ANSWER, among=pa.array(list(identities), pa.string()))
        return collapse(scan.table), scan

    def first_statuses(self, judge_key: str, identities: Collection[str]) -> dict[str, str]:
        """Return the status of the first answer to each call, whatever later answers mended.

        Answers that were lost on their way are none; a call that has no other is left out.
        """
        among = pa.array(list(identities), pa.string())
        rows = self.without_copies(self.scan(judge_key, _ATTEMPT, among=among).table).to_pandas()
        given = rows[rows["status"].ne("transport")].sort_values(["answered_at", "status"])
        first = given.drop_duplicates("identity")
        return dict(zip(first["identity"], first["status"], strict=True))

    def judge_keys(self) -> list[str]:
        """Return the keys of the judges with stored answers."""
        try:
            return sorted(path.name for path in self.base.iterdir() if path.is_dir())
        except NOT_THERE:
            return []


def collapse(table: pa.Table) -> pd.DataFrame:
    """Return one row per identity, whichever shards, in whatever order, the rows came from.

    Of usable answers the first counts, so that what was concluded from it stays; of failures
    the last. `n_attempts` counts the rows that there were.
    """
    rows = VerdictStore.without_copies(table).to_pandas()
    if rows["identity"].is_unique:
        return rows.assign(n_attempts=1)
    failed = rows["status"].ne("ok")
    time = rows["answered_at"].astype("int64")
    ties = [name for name in ("status", "answer", "battle_id") if name in rows]
    n_attempts = rows.groupby("identity")["status"].transform("size")
    ranked = rows.assign(
        _failed=failed, _time=time.where(~failed, -time), n_attempts=n_attempts
    ).sort_values(["_failed", "_time", *ties], kind="stable")
    kept = ranked.drop_duplicates("identity")
    return kept[[*rows.columns, "n_attempts"]].reset_index(drop=True)
