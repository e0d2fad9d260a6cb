"""Arrays that functions take: their types, and refusals that name value, place and remedy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def require(good: Any, name: str, values: Any, expected: str) -> None:
    """Raise ValueError with the first of some values that is not good, unless all are."""
    if good is True or np.all(good):  # of a single condition numpy asks for long
        return
    place = tuple(np.argwhere(~np.asarray(good, dtype=bool))[0].tolist())
    value = np.asarray(values)[place] if place or isinstance(values, np.ndarray) else values
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    words = zip(("row", "column", "layer"), place, strict=False)
    where = " in " + ", ".join(f"{word} {at}" for word, at in words) if place else ""
    shown = f"{value:.12g}" if isinstance(value, float) else repr(value)
    raise ValueError(f"{name} is {shown}{where}; expected {expected}")


def alike(n_axes: int = 1, /, **columns: Any) -> list[NDArray[Any]]:
    """Return columns as arrays; ValueError unless they have one shape, of so many axes."""
    arrays = [np.asarray(values) for values in columns.values()]
    if any(array.ndim != n_axes or array.shape != arrays[0].shape for array in arrays):
        pairs = zip(columns, arrays, strict=True)
        shapes = ", ".join(f"{name} {array.shape}" for name, array in pairs)
        axes = "a value for each row" if n_axes == 1 else f"one shape of {n_axes} axes"
        raise ValueError(f"columns have the shapes {shapes}; expected {axes} in all")
    return arrays


def alike_floats(n_axes: int = 1, /, **columns: Any) -> list[Floats]:
    """Return columns as arrays of floats, checked as by `alike`."""
    return [array.astype(float) for array in alike(n_axes, **columns)]


def model_pairs(**sides: Any) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Return the two models of every battle; ValueError unless each has a name, and differs."""
    first, second = alike(**{name: np.asarray(side, object) for name, side in sides.items()})
    for name, models in zip(sides, (first, second), strict=True):
        named = [isinstance(model, str) and model != "" for model in models.tolist()]
        require(named, name, models, "the name of a model")
    require(
        first != second,
        name,
        second,
        "another model than the first: leave out battles of a model with itself",
    )
    return first.astype(str), second.astype(str)
