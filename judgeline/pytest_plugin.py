"""Fixture `judgeline_gate` of pytest: a test that fails where a release would be worse."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from judgeline.gating import ReleaseGate


@pytest.fixture
def judgeline_gate() -> "Callable[..., ReleaseGate]":
    """Return `judgeline.gate`, failing the test unless the new model passes."""

    def held(battles: Any, **options: Any) -> "ReleaseGate":
        import judgeline

        found: ReleaseGate = judgeline.gate(battles, **options)
        if not found.passes:
            pytest.fail("\n".join(found.lines()), pytrace=False)
        return found

    return held
