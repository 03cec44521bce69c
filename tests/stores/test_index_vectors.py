"""Vectors of length one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.index_rows import WrongDimension
from sidecar.stores.index_vectors import best, require_length, similarities, unit

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(vector=st.lists(numbers, min_size=1, max_size=9).filter(any))
def test_a_unit_vector_has_the_length_one_whatever_it_was_made_of(vector: list[float]) -> None:
    made = unit(vector)
    assert made.dtype == np.dtype("<f4")
    assert np.linalg.norm(made.astype(np.float64)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("vector", [[], [0.0], [float("nan")], [[1.0, 2.0]]])
def test_what_has_no_direction_is_refused(vector: list[float]) -> None:
    with pytest.raises(ValueError, match="a vector "):
        unit(vector)


def test_the_expected_length_is_told() -> None:
    require_length(unit([1.0, 2.0]), 2)
    with pytest.raises(WrongDimension, match="have 3 numbers, and this has 2"):
        require_length(unit([1.0, 2.0]), 3)


def test_similarities_are_told_to_six_digits_and_within_their_range() -> None:
    one = unit([0.1, 0.2, 0.7])
    blobs = [unit(v).tobytes() for v in ([0.1, 0.2, 0.7], [-0.1, -0.2, -0.7], [0.2, -0.1, 0.0], [1.0, 0.0, 0.0])]
    assert similarities(blobs, one).tolist() == [1.0, -1.0, 0.0, 0.136083]


def test_of_equal_scores_the_earlier_place_is_the_better() -> None:
    assert best([0.5, 0.9, 0.5, -1.0, 0.9], 4) == [1, 4, 0, 2]
