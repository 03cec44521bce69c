"""Vectors as the index holds them: of length one, in 32-bit numbers. numpy is imported when the first one comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sidecar.core.index_rows import WrongDimension

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_DIMENSION = 16_000  # what pgvector can hold
SCORE_STEPS = 1_000_000  # scores are told apart to six digits, so that equal vectors are equal on every engine


def unit(embedding: Sequence[float]) -> NDArray[np.float32]:
    """The vector of length one in the same direction, little-endian.

    Raises ValueError for one that has no direction: no numbers, too many, zeros alone, or what is no finite number.
    """
    import numpy as np

    if not 0 < len(embedding) <= MAX_DIMENSION:
        raise ValueError(f"a vector has 1 to {MAX_DIMENSION} numbers")
    vector = np.asarray(embedding, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError("a vector is a list of finite numbers")
    largest = np.abs(vector).max()
    if largest == 0:
        raise ValueError("a vector of zeros has no direction")
    # By the largest first, for the squares of numbers near the ends of their range are infinite, or nothing.
    vector = vector / largest
    return (vector / np.linalg.norm(vector)).astype("<f4")


def require_length(vector: NDArray[np.float32], expected: int) -> None:
    """Raises WrongDimension."""
    if len(vector) != expected:
        raise WrongDimension(expected, len(vector))


def similarities(blobs: Sequence[bytes], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """The cosine of each stored vector with this one, all of its length, to six digits."""
    import numpy as np

    matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), len(vector))
    scores = (matrix @ vector).astype(np.float64)
    return np.clip(np.round(scores * SCORE_STEPS) / SCORE_STEPS, -1.0, 1.0)


def best(scores: Sequence[float], count: int) -> list[int]:
    """The places of the highest scores, best first; of equal ones the earlier place first."""
    import numpy as np

    return np.argsort(-np.asarray(scores), kind="stable")[:count].tolist()
