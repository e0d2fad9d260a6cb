"""Which dropped files become candidates of a corpus, and which are set aside, and why."""

from collections.abc import Collection, Mapping, Sequence
from json import dumps
from typing import NamedTuple

import pandas as pd
from upath import UPath

from judgeline.io import empty, typed
from judgeline.verdict import identity_hash
from resources.candidates.choosing import AnchorAnswers, anchor_answers, rated_models
from resources.candidates.controls import content_of_control, make_control
from resources.candidates.file import Answered, CandidateFile, read_candidate, require_size
from resources.candidates.folder import Seen, printable_name
from resources.candidates.schema import (
    CANDIDATE_DTYPES,
    HAS_VOTES_NOW,
    REFUSED_DTYPES,
    RefusedError,
    told,
)
from resources.config.options import CandidateOptions
from resources.tables.store import ParquetStore

_DETAIL = 500


class Accepted(NamedTuple):
    """Candidates of a corpus, the files set aside, and what to know of those accepted.

    `candidates` and `refused` have the columns of `CANDIDATE_DTYPES` and `REFUSED_DTYPES`;
    `notes` are sentences, such as how many answers no anchor can be held against.
    """

    candidates: pd.DataFrame
    refused: pd.DataFrame
    notes: list[str]


class History(NamedTuple):
    """Record of earlier runs: names of files by content hash, and the models placed by each judge.

    `named` maps a content hash to the model's and the file's name under which it was accepted;
    `placed` holds the models that stood on a leaderboard as candidates. `rated` holds those that
    people rate: with votes enough in the sampled battles; None where nothing was sampled yet.
    """

    named: Mapping[str, tuple[str, str]] = {}
    placed: Collection[str] = ()
    rated: Collection[str] | None = None


def history_in(tables: ParquetStore, corpus: str) -> History:
    """Return what the stored candidates of a corpus, and its judges' predictions, remember."""
    before = tables.stored("candidates", corpus)
    named: dict[str, tuple[str, str]] = {}
    if before is not None:
        dropped = before[before["file"].notna()].drop_duplicates("content_hash")
        columns = (dropped[c] for c in ("content_hash", "model", "file"))
        named = {content: (model, file) for content, model, file in zip(*columns, strict=True)}
    judges = tables.partitions("predictions", corpus)
    told = (tables.stored("predictions", corpus, judge) for judge in judges)
    placed = frozenset(name for table in told if table is not None for name in table["model"])
    sample = tables.stored("sampled_battles", corpus)
    return History(named, placed, None if sample is None else rated_models(sample))


def contents(files: Sequence[Seen], options: CandidateOptions) -> str:
    """Return a hash of everything that says which candidates there are, and how many battles.

    The contents of the complete files, whatever their names, the controls and the settings. Empty
    text where there is no file and no control.
    """
    hashes = sorted({one.content_hash for one in files if not one.is_waiting})
    controls = [content_of_control(name, own) for name, own in sorted(options.controls.items())]
    if not hashes and not controls:
        return ""
    settings = {"half_width": options.half_width, "max_battles": options.max_battles}
    return identity_hash(
        {"files": dumps(hashes), "controls": dumps(controls), "settings": dumps(settings)}
    )


def accept(
    folder: UPath,
    files: Sequence[Seen],
    battles: pd.DataFrame,
    options: CandidateOptions,
    *,
    seed: int = 0,
    history: History | None = None,
) -> Accepted:
    """Return the candidates that a folder holds for a corpus, controls included.

    A file of a known content keeps the name it had, and files of one content are one candidate. Of
    two files for one model with different contents neither is accepted, unless one was before.
    """
    anchors = anchor_answers(battles)
    judged = _Acceptance(folder, anchors, history or History())
    for seen in _once(files, judged.history):
        judged.look_at(seen)
    judged.settle_rivals()
    for control in options.controls:
        try:
            _require_texts(anchors)
            rows = make_control(control, options, anchors, battles, seed=seed)
            judged.candidates.append(rows)
        except RefusedError as fault:
            judged.refuse(None, None, fault)
    refused = pd.DataFrame(judged.refused, columns=list(REFUSED_DTYPES))
    return Accepted(
        typed(pd.concat(judged.candidates, ignore_index=True), CANDIDATE_DTYPES),
        typed(refused, REFUSED_DTYPES),
        judged.notes,
    )


class _Acceptance:
    """The files of a folder, looked at one after the other."""

    def __init__(self, folder: UPath, anchors: AnchorAnswers, history: History) -> None:
        self._folder, self._anchors, self.history = folder, anchors, history
        asked = anchors.answers.drop_duplicates("question_id").set_index("question_id")
        self._asked = asked[["instruction", "language"]]
        self._by_text = _ids_by_text(self._asked["instruction"])
        self.candidates = [empty(CANDIDATE_DTYPES)]
        self.refused: list[tuple[str | None, str | None, str, str]] = []
        self.notes: list[str] = []
        self._read: list[tuple[Seen, str, pd.DataFrame]] = []

    def look_at(self, seen: Seen) -> None:
        """Read one file, and keep its rows or the reason why not."""
        name = printable_name(seen.name)
        try:
            require_size(name, seen.size)
            content = self._bytes_of(seen)
            named = self.history.named.get(seen.content_hash, (None, name))
            found = read_candidate(named[1], content)
            self._require_new(name, found.model)
            rows = self._match(name, found)
        except FileNotFoundError:
            return  # withdrawn since the folder was listed
        except RefusedError as fault:
            self.refuse(name, seen.content_hash, fault)
        else:
            told_as = rows.assign(file=named[1], content_hash=seen.content_hash)
            self._read.append((seen, found.model, typed(told_as, CANDIDATE_DTYPES)))

    def _bytes_of(self, seen: Seen) -> bytes:
        refused = RefusedError(
            "no-permission",
            f"{told(seen.name)} may not be read by the user that runs this; let it be (chmod a+r)",
        )
        if seen.state == "no-permission":
            raise refused
        try:
            return (self._folder / seen.name).read_bytes()
        except PermissionError as error:
            raise refused from error

    def refuse(self, name: str | None, content: str | None, fault: RefusedError) -> None:
        """Set a file, or a control, aside."""
        self.refused.append((name, content, fault.reason, fault.detail[:_DETAIL]))

    def settle_rivals(self) -> None:
        """Accept what was read, but not two contents for one model."""
        by_model: dict[str, list[tuple[Seen, str, pd.DataFrame]]] = {}
        for one in self._read:
            by_model.setdefault(one[1], []).append(one)
        for model, rivals in by_model.items():
            known = [one for one in rivals if one[0].content_hash in self.history.named]
            kept = rivals if len(rivals) == 1 else known[:1] if len(known) == 1 else []
            self.candidates += [rows for _, _, rows in kept]
            names = " and ".join(told(seen.name) for seen, _, _ in rivals)
            for seen, _, _ in rivals:
                if seen not in [one[0] for one in kept]:
                    detail = (
                        f"{names} hold different answers of one model, {told(model)}; remove all "
                        "but one, or give each its own name"
                    )
                    fault = RefusedError("second-file", detail)
                    self.refuse(printable_name(seen.name), seen.content_hash, fault)

    def _require_new(self, name: str, model: str) -> None:
        _require_texts(self._anchors)
        rated = self._anchors.voted if self.history.rated is None else self.history.rated
        if model not in rated:
            return
        if model in self.history.placed:
            raise RefusedError(
                HAS_VOTES_NOW,
                f"people have voted on {told(model)} since it was placed: the corpus rates it now, "
                f"and its prediction is held against that; remove {told(name)} when you like",
            )
        raise RefusedError(
            "has-votes",
            f"{told(name)} is of {told(model)}, which has votes in this corpus: it is rated there; "
            "remove the file, or name the model differently if it is another one",
        )

    def _match(self, name: str, found: CandidateFile) -> pd.DataFrame:
        """Return the answers to questions that an anchor answered too."""
        said: dict[str, Answered] = {}
        unknown = []
        for answer in found.answers:
            questions = self._questions(name, answer, found.unit)
            if not questions:
                unknown.append(answer)
            for question in questions:
                _require_agreement(name, question, said.setdefault(question, answer), answer, found)
        if not said:
            first = unknown[0]
            raise RefusedError(
                "no-known-question",
                f"{told(name)}: no anchor answered any of its {len(found.answers)} questions, the "
                f"first is {told(first.question_id or first.instruction)}; take those of "
                "`judgeline candidates questions`",
            )
        if unknown:
            first = unknown[0]
            self.notes.append(
                f"{told(name)}: {len(unknown)} of {len(found.answers)} answers are to questions "
                f"that no anchor answered, such as {told(first.question_id or first.instruction)} "
                f"in {found.unit} {first.number}; they are left out"
            )
        asked = self._asked.loc[list(said)]
        return pd.DataFrame(
            {
                "model": found.model,
                "question_id": list(said),
                "instruction": asked["instruction"].to_numpy(),
                "language": asked["language"].to_numpy(),
                "completion": [answer.completion for answer in said.values()],
                "family": found.family,
                "metadata": dumps(found.metadata, sort_keys=True),
            }
        )

    def _questions(self, name: str, answer: Answered, unit: str) -> list[str]:
        """Return the questions of the corpus that a row answers: by id, else by their text."""
        if answer.question_id is None:
            return self._by_text.get(_text_key(str(answer.instruction)), [])
        if answer.question_id not in self._asked.index:
            return []
        text = self._asked.loc[answer.question_id, "instruction"]
        if answer.instruction is not None and _text_key(answer.instruction) != _text_key(text):
            raise RefusedError(
                "other-instruction",
                f"{told(name)}, {unit} {answer.number}: question {told(answer.question_id)} reads "
                f"{told(answer.instruction)} here and {told(text)} in the corpus; the answers may "
                "be to another revision: correct question_id, or leave one of the columns out",
            )
        return [answer.question_id]


def _require_agreement(
    name: str, question: str, first: Answered, answer: Answered, found: CandidateFile
) -> None:
    if first.completion != answer.completion:
        raise RefusedError(
            "two-answers",
            f"{told(name)}: {found.unit} {first.number} answers question {told(question)} with "
            f"{told(first.completion)}, {found.unit} {answer.number} with "
            f"{told(answer.completion)}; keep one of them",
        )


def _require_texts(anchors: AnchorAnswers) -> None:
    if not anchors.has_texts:
        raise RefusedError(
            "no-texts",
            "the battles of this corpus have no texts, so that nobody can judge a new answer "
            "against theirs; use a corpus that publishes them",
        )


def _once(files: Sequence[Seen], history: History) -> list[Seen]:
    """Return one complete file per content; of several the one that was accepted before."""
    ready = [one for one in files if not one.is_waiting]

    def is_other(one: Seen) -> bool:
        return history.named.get(one.content_hash, ("", ""))[1] != printable_name(one.name)

    ready.sort(key=lambda one: (is_other(one), one.name))
    first: dict[str, Seen] = {}
    for one in ready:
        first.setdefault(one.content_hash, one)
    return sorted(first.values(), key=lambda one: one.name)


def _text_key(text: str) -> str:
    """Return a question's text as it is compared: ends of lines and outer space do not count."""
    return text.replace("\r\n", "\n").strip()


def _ids_by_text(instructions: pd.Series) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for question, text in instructions.items():
        found.setdefault(_text_key(text), []).append(str(question))
    return found
