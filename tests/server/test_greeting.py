"""What `initialize` brings beyond LSP."""

from __future__ import annotations

import pytest

from protocol.version import MAJOR, PROTOCOL_VERSION
from sidecar.server.failures import Failed
from sidecar.server.greeting import answer, labels, options
from tests.server.joined import Workbench, join, service


@pytest.mark.parametrize("params", [None, {}, {"initializationOptions": None}, {"initializationOptions": {}}])
def test_all_options_may_be_left_out(params: object) -> None:
    wanted = options(params)
    assert (wanted.events, labels(wanted)) == ([], {})


@pytest.mark.parametrize("version", [PROTOCOL_VERSION, f"{MAJOR}.999"])
def test_another_minor_version_is_served(version: str) -> None:
    assert options({"initializationOptions": {"protocol_version": version}}).protocol_version == version


@pytest.mark.rule("wire.another-major-is-refused")
def test_another_major_version_is_refused_in_so_many_words() -> None:
    with pytest.raises(Failed) as caught:
        options({"initializationOptions": {"protocol_version": f"{MAJOR + 1}.0"}})
    failure = caught.value.failure
    assert failure.code == -32602
    assert PROTOCOL_VERSION in failure.message


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (5, "initializationOptions"),
        ({"evnets": []}, "initializationOptions.evnets"),
        ({"events": ["sources", "all"]}, "initializationOptions.events.1"),
        ({"turn_id": "a.b"}, "initializationOptions.turn_id"),
        ({"protocol_version": "1"}, "initializationOptions.protocol_version"),
    ],
)
def test_wrong_options_are_named_by_place(given: object, where: str) -> None:
    with pytest.raises(Failed) as caught:
        options({"initializationOptions": given})
    data = caught.value.failure.data
    assert data is not None
    assert data["faults"][0]["where"] == where  # type: ignore[index]


def test_params_that_are_no_object_are_refused() -> None:
    with pytest.raises(Failed):
        options([1])


def test_our_part_stands_beside_other_experiments() -> None:
    result = answer({"capabilities": {"experimental": {"other": 1}, "hover": True}, "serverInfo": {}}, {"role": "exec"})
    assert result == {
        "capabilities": {"experimental": {"other": 1, "artifact_sidecar": {"role": "exec"}}, "hover": True},
        "serverInfo": {},
    }


@pytest.mark.rule("roles.labels-are-only-labels")
async def test_labels_and_events_stay_with_the_client() -> None:
    remote = await join(service(Workbench()))
    await remote.initialize(turn_id="turn_1", tool_call_id="c1", events=["sources", "notices"])
    client = remote.connection.client
    assert client.labels == {"turn_id": "turn_1", "tool_call_id": "c1"}
    assert client.events == {"sources", "notices"}
    assert client.synced == 7
    await remote.drop()


async def test_an_initialize_that_was_refused_changes_nothing() -> None:
    remote = await join(service(Workbench()))
    params = {"capabilities": 5, "initializationOptions": {"events": ["sources"]}}
    assert (await remote.call(1, "initialize", params))["error"]["code"] == -32602
    assert remote.connection.client.events == frozenset()
    await remote.drop()
