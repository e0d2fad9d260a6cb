"""A table has no setting but those that are recorded with it."""

from operator import attrgetter

import pytest

from assets.settings import narrowed
from resources.config.corpora import CorpusDefinition

CORPUS = CorpusDefinition(slug="c", reader="arena", seed=3, rating={"l2": 0.5})


def test_named_settings_are_those_of_the_entry() -> None:
    own = narrowed(CORPUS, {"slug", "seed", "rating.l2"})
    assert (own.slug, own.seed, own.rating.l2) == ("c", 3, 0.5)
    assert narrowed(CORPUS, {"rating", "rating.l2"}).rating == CORPUS.rating


@pytest.mark.parametrize("name", ["reader", "candidates", "rating.seed"])
def test_reading_another_setting_is_an_error(name: str) -> None:
    own = narrowed(CORPUS, {"slug", "seed", "rating.l2"})
    with pytest.raises(AttributeError, match=name.rpartition(".")[2]):
        attrgetter(name)(own)
    attrgetter(name)(CORPUS)  # the entry itself keeps everything
