"""Declared tables of ratings: slopes, held-out ratings, and every scoring method."""

from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.tables.rules import among, known, n_rows, unique, within
from judgeline.tables.schema import Table, fails, stops, table, warns

MEANINGS: dict[str, str] = {
    "hard": "rubric: who scored higher in both orders",
    "soft": "rubric: calibrated score difference",
    "choice": "choice: the letter said in both orders",
    "perplexity": "choice: the order that perplexed the judge less",
    "likelihood": "choice: probabilities of the letters, as published",
    "likelihood-calibrated": "choice: the same, with a slope fitted to votes",
    "score-plain": "single scores as said, with a slope fitted to votes",
    "score": "single scores, expected, with a slope fitted to votes",
    "btl": "rubric: explanation and score, regressed on votes",
    "btl2": "single scores: both reasons and scores, regressed on votes",
}
"""What each scoring method is, in a few words, in the order in which they are shown."""

_WARN_STD_ERRORS = 2

BETA_FOLDS = table(
    "beta_folds",
    BetaFolds,
    ["held_out_model"],
    stops(
        "beta_is_usable",
        "Soft outcomes need a positive slope: a judge that contradicts people has none.",
        "contradicts-humans: the judge prefers what people reject, by two standard errors of the "
        "slope, use another; votes-cannot-tell: the slope is not above 0 and within two standard "
        "errors of it, add voted battles; "
        "constant-scores: all score differences are equal and tell nothing, use another; "
        "separable or no-decisive-votes: too few human votes, add voted battles.",
        n_rows(1, "there is at least one fold"),
        among("status", ["ok"], "the status of every fold is ok"),
        *known("beta", note="every fold has a beta"),
        within("beta", 0, 1e6, strict_min=True, note="beta is positive and finite"),
    ),
    warns(
        "beta_is_well_determined",
        "A slope within two standard errors of zero says that the judge may know nothing.",
        "Add voted battles, or use a judge that agrees better with people.",
        within(
            "std_errors_from_zero",
            _WARN_STD_ERRORS,
            of=lambda t: t["beta"] / t["std_error"],
            note=f"beta is at least {_WARN_STD_ERRORS} standard errors above zero",
        ),
    ),
)
HELDOUT_RATINGS = Table("heldout_ratings", HeldOutRatings, key=["model", "method"])
SCORING_METHODS = table(
    "scoring_methods",
    "method n_models n_battles n_available mae mae_rescaled bias stretch spearman kendall "
    "mean_beta threshold coverage median_width n_calls prompt_tokens completion_tokens note",
    ["method"],
    fails(
        "methods_have_figures",
        "The judge has one row per scoring method, with every figure on its scale.",
        "Remake scoring_methods.",
        unique("method"),
        among("method", list(MEANINGS), "the method is a known one"),
        within("spearman", -1, 1),
        within("kendall", -1, 1),
        within("coverage", 0, 1),
        within("mae", 0),
    ),
    types={"prompt_tokens": "float64", "completion_tokens": "float64"},
)
