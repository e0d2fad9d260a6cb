"""Texts of `judgeline why`: the origin of a rating, in a terminal or as Markdown."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from judgeline.elo import VOTES_WAIT, is_baseline
from judgeline.intervals import BY_JUDGE
from judgeline.report import Evidence, in_markdown, inert, lead_text, shortened
from pipelines.commands.why import Why

SHORT = 400
"""Characters of a text that are shown unless all are asked for."""

_BATTLE = 3  # level of a battle's heading
_ORIGIN = {
    "content_revision": "corpus revision",
    "sample_seed": "seed of the sample",
    "score_basis": "scores",
    "prompt_version": "prompt version",
    "template_hash": "prompt template (sha256)",
    "judge_model": "judge's model",
    "judge_revision": "judge's revision",
    "judge_identity": "judge's identity",
    "rating_settings": "rating settings and seed",
}


class Line(NamedTuple):
    """A heading (level 1 to 3), a labelled value (level 0), or a text from outside (level -1)."""

    level: int
    label: str
    value: str = ""


def lines_of(why: Why, *, full_text: bool = False) -> list[Line]:
    """Return the lines on a rating's origin in the order of reading; texts from outside inert."""
    title = f"{why.model}, judged by {why.judge} on {why.corpus}, by {why.method} outcomes"
    lines = [Line(1, title), *_rating(why), *_human(why), *_fold(why.fold), *_judges(why)]
    if why.missing:
        counts = ", ".join(f"{name} {n}" for name, n in why.missing.items())
        lines.append(Line(0, "battles without a score", counts))
    if why.withheld:
        lines.append(Line(0, "ratings withheld", f"{why.withheld}; so no battle has an influence"))
    held = "what holds its place" + " by the judge alone" * bool(why.votes)
    lines += [Line(0, held, lead_text(lead)) for lead in why.leads]
    lines += _votes(why)
    whose = "the judge's rating" if why.votes else "the rating"
    for sign, battles in (("raise", why.raises), ("lower", why.lowers)):
        if battles:
            of = f"{len(battles)} of {why.n_battles} that count"
            lines.append(Line(2, f"Battles that {sign} {whose} most ({of})"))
        for evidence in battles:
            lines += _battle(evidence, full_text)
    return [Line(one.level, inert(one.label), inert(one.value)) for one in [*lines, *_origin(why)]]


def _rating(why: Why) -> Iterator[Line]:
    own = why.rating
    if own["rating"] is not None:
        place = "" if own["rank"] is None else f"; rank {own['rank']}"
        if place and own["best_rank"] is not None:
            place += f", between {own['best_rank']} and {own['worst_rank']}"
        yield Line(0, "rating", f"{own['rating']:.1f} Elo{place}")
    if own["lower"] is not None:
        yield Line(0, "interval", _ends(own, ""))
    if own["evidence"]:
        yield Line(0, "evidence", str(own["evidence"]))
    if own["judge_rating"] is not None and own["evidence"] != BY_JUDGE:
        alone = f"{own['judge_rating']:.1f} Elo, as if nobody had voted on it"
        yield Line(0, "by the judge alone", alone + _share_text(why.judge_share))
    if own["judge_lower"] is not None:
        yield Line(0, "its interval", _interval(own))
    if why.by_method:
        yield Line(0, "by method", _by_method(why))


def _share_text(share: float | None) -> str:
    """Return how far the judge's rating moves the board's, if its votes count too."""
    return "" if share is None else f"; a point more of it moves the rating by {share:.2f}"


def _human(why: Why) -> Iterator[Line]:
    own, human = why.rating, why.rating["human_rating"]
    if human is None:
        waits = VOTES_WAIT in str(own["flags"])
        votes = f"none: {'too few votes to count yet' if waits else 'no human votes'}"
    else:
        votes = f"{human:.1f} Elo, from {own['n_votes']} votes"
        if own["judge_rating"] is not None and why.method != "human":
            votes += f"; the judge is off by {own['judge_rating'] - human:+.1f}"
    yield Line(0, "human rating", votes)
    if own["flags"]:
        yield Line(0, "flags", str(own["flags"]))
    if why.beyond:
        yield Line(0, "note", why.beyond)
    if why.candidate:
        known = "; ".join(f"{name.replace('_', ' ')} {x}" for name, x in why.candidate.items())
        yield Line(0, "candidate", f"{known}; no human votes")


def _by_method(why: Why) -> str:
    """Return the meaning of the method, and the ratings by others, raw and on the ruler."""
    basis = f"{why.method} is {why.rating['basis']}; " if why.rating["basis"] else ""
    others = []
    for name, value in why.by_method.items():
        if name in ("human", why.method) or is_baseline(name) or "rescaled" in name:
            continue
        ruled = why.by_method.get(f"{name}-rescaled")
        on_ruler = "" if ruled is None else f" ({ruled:.1f} on the human ruler)"
        others.append(f"{name} {value:.1f}{on_ruler}")
    return basis + ", ".join(others)


def _interval(own: Mapping[str, Any]) -> str:
    ends = _ends(own, "judge_")
    if own["threshold"] is None:
        return f"{ends} ({own['calibration_note']})" if own["calibration_note"] else ends
    parts = ("judge_std_error", "vote_std_error", "excess_sd")
    squares = " + ".join(f"{own[name]:.1f}^2" for name in parts)
    return (
        f"{ends}: {own['threshold']:.2f} x {own['spread']:.1f} Elo to either side, calibrated on "
        f"{own['n_calibrating']} models; {own['spread']:.1f} = sqrt({squares}): error of the "
        f"rating, noise of votes on as many battles, and residuals beyond both{_outward(own)}"
    )


def _ends(own: Mapping[str, Any], whose: str) -> str:
    lower, upper = own[f"{whose}lower"], own[f"{whose}upper"]
    return f"{lower:.1f} to {upper:.1f} Elo, {own['promised_coverage']:.0%} asked for"


def _outward(own: Mapping[str, Any]) -> str:
    moved = own["outward"] or 0.0
    if abs(moved) < 0.05:  # nothing, as shown
        return ""
    end = "upper" if moved > 0 else "lower"
    return (
        f"; the {end} end lies {abs(moved):.1f} farther out, since ratings are drawn to the middle"
    )


def _fold(fold: Mapping[str, Any]) -> Iterator[Line]:
    if not fold:
        return
    beta, error = (
        "an unknown number" if fold[name] is None else f"{fold[name]:,.3f}"
        for name in ("beta", "std_error")
    )
    votes, n = "", fold["n_battles"]
    if n is not None:
        votes = f", standard error {error}, from {n:,} decisive votes on other models"
    yield Line(0, "slope (beta)", f"{beta} logits per rubric point{votes} ({fold['status']})")


def _judges(why: Why) -> Iterator[Line]:
    """Return each judge of a pooled rating: its own rating, its weight, and where to go on."""
    if why.judges:
        yield Line(2, f"Its judges: {why.rating['basis'] or 'no rating together'}")
    for judge, own in why.judges.items():
        rating = f"no rating ({own['flags'] or 'not on its leaderboard'})"
        if own["judge_rating"] is not None:
            ends = f"{own['judge_lower']:.1f} to {own['judge_upper']:.1f}"
            rating = f"{own['judge_rating']:.1f} Elo ({ends}) by {own['method']}"
        weight = f"weight {own['weight']:.2f} in both means"
        yield Line(0, judge, f"{rating}; {weight}; next: {own['next']}")


def _votes(why: Why) -> Iterator[Line]:
    """Return the votes that move a rating by judge and votes most, a line each."""
    if why.votes:
        of = f"{len(why.votes)} of {why.rating['n_votes']}"
        yield Line(2, f"Votes that move the rating most ({of})")
    for vote in why.votes:
        share = f"counts as {vote['outcome']:.2f} of a win, {vote['expected']:.2f} expected"
        label = f"{vote['influence']:+.2f} Elo against {vote['opponent']}"
        yield Line(0, label, f"{share}; battle {vote['battle_id']}")


def _battle(evidence: Evidence, full_text: bool) -> Iterator[Line]:
    def text(label: str, value: str | None) -> Line:
        shown = "(the corpus has no text)" if value is None else inert(value)
        return Line(-1, label, shown if full_text else shortened(shown, SHORT))

    counts = f"counts as {evidence.outcome:.2f} of a win, {evidence.expected:.2f} expected; "
    counts += evidence.vote
    language = f" ({evidence.language})" if evidence.language else ""
    yield Line(_BATTLE, f"{evidence.influence:+.2f} Elo against {evidence.opponent}")
    yield Line(0, "battle", f"{evidence.battle_id}{language}")
    yield Line(0, "outcome", counts)
    yield text("question", evidence.instruction)
    yield text(f"answer of {evidence.model}", evidence.completion)
    yield text(f"answer of {evidence.opponent}", evidence.opponent_completion)
    for reading in evidence.readings:
        again = f", run {reading.replicate + 1}" if reading.replicate else ""
        first = f"{reading.shown_first} first; " if reading.shown_first else ""
        points = f"no score: {reading.status}"
        if reading.difference is not None:
            points = f"{reading.difference:+.2f} {reading.unit} for {evidence.model}"
        call = f"{first}{points}; call {reading.identity[:16]}"
        yield Line(0, f"verdict {reading.order}{again}", call)
        yield text("the judge, word for word", reading.answer or "(nothing)")
        if reading.reasoning:
            yield text("its thoughts before that", reading.reasoning)


def _origin(why: Why) -> Iterator[Line]:
    yield Line(2, "Where it comes from")
    for name, label in _ORIGIN.items():
        if name in why.origin:
            value = why.origin[name]
            yield Line(0, label, value if isinstance(value, str) else json.dumps(value))
    if why.note:
        yield Line(0, "runs", why.note)
    for made in why.made:
        version = f", code version {made.code_version}" if made.code_version else ""
        yield Line(0, made.asset, f"{made.made_at}, run {made.run_id}{version}")


def show_why(console: Console, lines: Iterable[Line]) -> None:
    """Print the origin of a rating in a terminal; no text in it is markup."""
    for line in lines:
        if line.level > 0:
            style = "bold" if line.level < _BATTLE else "bold cyan"
            console.print(Text(f"\n{line.label}", style), soft_wrap=True)
            continue
        console.print(
            Text.assemble((f"{line.label}:", "dim"), f" {line.value}" if line.level == 0 else ""),
            soft_wrap=True,
        )
        if line.level < 0:
            console.print(Padding(Text(line.value), (0, 0, 0, 4), expand=False))


def markdown_of(lines: Iterable[Line]) -> str:
    """Return the origin of a rating as Markdown; no text from outside can format, link or fetch."""
    page = ""
    for line in lines:
        label = in_markdown(line.label)
        if line.level > 0:
            page += f"\n{'#' * line.level} {label}\n\n"
        elif line.level == 0:
            page += f"- {label}: {in_markdown(line.value)}\n"
        else:
            block = "\n".join(f"    {row}" for row in line.value.split("\n"))
            page += f"\n{label}:\n\n{block}\n\n"
    return page.lstrip("\n")
