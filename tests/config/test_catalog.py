"""The catalog reads its files anew for everybody but a run, which keeps to what it began with."""

import dagster as dg
import pytest
from catalogs import catalog_of

from resources.config.catalog import Catalog

JUDGE = "one: {display_name: One, family: f, kind: recorded}"


@pytest.fixture
def files(tmp_path):
    return catalog_of(tmp_path, corpora="c: {reader: arena}", judges=JUDGE), tmp_path


def test_an_edit_is_seen_at_once(files):
    catalog, files = files
    assert list(catalog.judges()) == ["one"]
    (files / "judges.yaml").write_text(JUDGE + "\n" + JUDGE.replace("one", "two"))
    assert list(catalog.judges()) == ["one", "two"]


def ran(files, first, then):
    """The judges that two steps of a run saw, with an edit before each."""
    seen = []

    def edit_and_look(text, catalog):
        (files[1] / "judges.yaml").write_text(text)
        seen.append(sorted(catalog.judges()))

    @dg.asset
    def before(catalog: Catalog) -> None:
        edit_and_look(first, catalog)

    @dg.asset(deps=[before])
    def after(catalog: Catalog) -> None:
        edit_and_look(then, catalog)

    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [before, after],
            instance=instance,
            resources={"catalog": files[0]},
            raise_on_error=False,
        )
    return done.success, seen


def test_half_a_file_in_the_middle_of_a_run_is_for_the_next(files):
    assert ran(files, "one: {kind: [an edit", "") == (True, [["one"], ["one"]])
    success, seen = ran(files, "one: {kind: [an edit", "")
    assert (success, seen) == (False, [])  # it began with half a file, and a step said so
