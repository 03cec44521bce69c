"""The catalogue finds artifacts by the beginning of a path and by parts of a name, in the order of the turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.artifacts import Artifact, Artifacts
from sidecar.core.catalogue import Catalogue, Spelling
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import parse_physical

pytestmark = pytest.mark.rule("editor.completes-paths-and-citations")

ORDER = ["turn_2", "turn_1"]
NAMES = ("aa", "ab", "ba", "bb", "ca", "cb")


@pytest.fixture
def catalogue() -> Catalogue:
    made, known = Catalogue(), Artifacts()
    for physical in (
        "turn_1/files/b.md", "turn_2/files/Ünder/Report.md", "turn_1/files/a.md", "turn_1/attachments/in.pdf",
        "turn_2/files/hidden.md", "turn_11/files/z.md",
    ):  # fmt: skip
        fact = FileFact(physical, StatKey(1, 1, 1, 1, 1), physical, "text/plain", True)
        made.add(known.see(parse_physical(physical), fact, ts=1.0, call="", visibility="external"))
    return made


def sees(artifact: Artifact) -> bool:
    return "hidden" not in artifact.path.rel


def begun(catalogue: Catalogue, typed: str, spelling: Spelling = "logical") -> list[str]:
    return [entry.physical for entry in catalogue.begin_with(typed, spelling, ORDER, sees)]


def test_what_begins_so_comes_turn_by_turn_in_order_of_names(catalogue: Catalogue) -> None:
    everything = ["turn_2/files/Ünder/Report.md", "turn_1/files/a.md", "turn_1/files/b.md", "turn_1/attachments/in.pdf"]
    assert begun(catalogue, "fi:") == begun(catalogue, "") == everything
    assert begun(catalogue, "turn_", "physical") == everything
    assert begun(catalogue, "fi:turn_1.") == everything[1:]
    assert begun(catalogue, "fi:turn_1.files/a") == ["turn_1/files/a.md"]
    assert begun(catalogue, "turn_1/att", "physical") == ["turn_1/attachments/in.pdf"]
    assert begun(catalogue, "fi:turn_3") == []


def test_places_of_turns_are_steps_on_the_way(catalogue: Catalogue) -> None:
    def folders(typed: str, spelling: Spelling = "logical") -> list[str]:
        return [folder.path for folder in catalogue.folders(typed, spelling, ORDER, sees)]

    assert folders("fi:tu") == ["fi:turn_2.files/", "fi:turn_1.files/", "fi:turn_1.user.attachments/"]
    assert folders("fi:turn_1.u") == ["fi:turn_1.user.attachments/"]
    assert folders("turn_1/", "physical") == ["turn_1/files/", "turn_1/attachments/"]
    assert folders("fi:turn_1.files/") == []


def test_a_place_with_nothing_to_see_is_no_step(catalogue: Catalogue) -> None:
    nothing = list(catalogue.folders("fi:", "logical", ORDER, lambda artifact: False))
    assert nothing == []


def test_parts_of_names_are_found_in_whatever_case(catalogue: Catalogue) -> None:
    found = [entry.name for entry in catalogue.holding("REPORT", ORDER, sees)]
    assert (found, [entry.name for entry in catalogue.holding("ünder/re", ORDER, sees)]) == (
        ["Report.md"],
        ["Report.md"],
    )
    assert list(catalogue.holding("hidden", ORDER, sees)) == []


def test_an_artifact_stands_in_it_once(catalogue: Catalogue) -> None:
    before = len(catalogue)
    for entry in list(catalogue.all(ORDER)):
        catalogue.add(entry.artifact)
    assert len(catalogue) == before == 6


def test_turns_are_known_with_their_first_moment(catalogue: Catalogue) -> None:
    assert catalogue.firsts == {"turn_1": 1.0, "turn_2": 1.0, "turn_11": 1.0}


@given(
    st.lists(
        st.sampled_from([f"turn_{n}/files/{c}{d}.md" for n in (1, 2, 11) for c in "abc" for d in "ab"]), unique=True
    ),
    st.sampled_from(["", "fi:turn_1.files/", "fi:turn_1", "fi:turn_2.files/b", "fi:x"]),
    st.sampled_from(["", "fi:turn_1.files/ab.md", "fi:turn_11.files/aa.md", "fi:turn_2.files/bb.md", "fi:z"]),
    st.sampled_from([None, "", "turn_1", "turn_2"]),
)
def test_a_page_goes_on_behind_a_path(names: list[str], prefix: str, after: str, turn_id: str | None) -> None:
    made, known = Catalogue(), Artifacts()
    paths = [parse_physical(name) for name in names]
    for path in paths:
        fact = FileFact(path.physical, StatKey(1, 1, 1, 1, 1), path.physical, "text/plain", True)
        made.add(known.see(path, fact, ts=1.0, call="", visibility="external"))
        assert [*made.after("fi:~", None)] == []  # asked in between, so that the order is put right again and again
    logical = sorted(path.logical or "" for path in paths if turn_id in (None, path.turn_id))
    wanted = [one for one in logical if one > after and one.startswith(prefix)]
    assert [entry.logical for entry in made.after(after, turn_id, prefix)] == wanted
