"""Flags, then variables, then the file; nothing of ours inside OUT_DIR; every value knows where it came from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from sidecar.config import PREFIX, Settings, default_state_dir, is_inside, read_settings
from sidecar.settings_file import NAME, BadSettings
from sidecar.stores.location import StoreSettings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(PREFIX) or name == "OUT_DIR":
            monkeypatch.delenv(name)


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def source_of(settings: Settings, name: str) -> str:
    return next(setting.source for setting in settings.listed() if setting.name == name)


@pytest.mark.rule("settings.flags-then-environment-then-file")
def test_flags_win_over_variables_and_variables_over_the_file(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = out_dir.parent / NAME
    file.write_text("idle_exit = 1\nkeep_bytes = 2\nlog_level = 'debug'\n")
    monkeypatch.setenv("ARTIFACT_SIDECAR_KEEP_BYTES", "3")
    monkeypatch.setenv("ARTIFACT_SIDECAR_LOG_LEVEL", "error")
    settings = read_settings({"out_dir": str(out_dir), "log_level": "warning", "idle_exit": None})
    assert (settings.idle_exit, settings.keep_bytes, settings.log_level) == (1, 3, "warning")
    names = ("idle_exit", "keep_bytes", "log_level", "trust_timeline")
    expected = [str(file), "ARTIFACT_SIDECAR_KEEP_BYTES", "--log-level", "default"]
    assert [source_of(settings, name) for name in names] == expected


@pytest.mark.rule("cli.out-dir-from-flag-or-environment")
def test_the_flag_names_the_workspace_before_the_variable_does(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUT_DIR", str(out_dir))
    assert read_settings({}).out_dir == str(out_dir)
    assert source_of(read_settings({}), "out_dir") == "OUT_DIR"
    assert read_settings({"out_dir": str(tmp_path)}).out_dir == str(tmp_path)


@pytest.mark.parametrize("flags", [{}, {"out_dir": ""}, {"out_dir": "/nowhere/at/all"}])
def test_without_a_folder_there_is_no_workspace(flags: dict[str, str]) -> None:
    with pytest.raises(BadSettings):
        read_settings(flags)


def test_out_dir_is_known_by_its_real_path(out_dir: Path) -> None:
    link = out_dir.parent / "link"
    link.symlink_to(out_dir)
    settings = read_settings({"out_dir": str(link)})
    assert settings.out_dir == str(out_dir)
    assert settings.state_dir == default_state_dir(str(out_dir))


@pytest.mark.rule("journal.state-is-never-inside-out-dir")
@pytest.mark.parametrize("name", ["state_dir", "socket_dir", "record"])
@pytest.mark.parametrize("place", [".", "deep/er", "../link/x"])
def test_nothing_of_ours_is_inside_out_dir(out_dir: Path, name: str, place: str) -> None:
    (out_dir.parent / "link").symlink_to(out_dir)
    with pytest.raises(BadSettings, match=name):
        read_settings({"out_dir": str(out_dir), name: str(out_dir / place)})


@pytest.mark.rule("journal.state-is-never-inside-out-dir")
def test_the_default_state_folder_is_refused_too_when_out_dir_holds_it(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(out_dir / "state"))
    with pytest.raises(BadSettings, match="state_dir"):
        read_settings({"out_dir": str(out_dir)})


def test_workspaces_of_one_name_have_state_folders_of_their_own() -> None:
    names = {default_state_dir(path) for path in ("/a/out", "/b/out", "/a/o\u00fct", "/")}
    assert len(names) == 4
    assert all(Path(name).name.isascii() for name in names)


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/x", "/", True)],
)
def test_inside_means_whole_segments(path: str, folder: str, inside: bool) -> None:
    assert is_inside(path, folder) is inside


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("keep_bytes", "2GiB", 2 * 1024**3),
        ("idle_exit", "0", 0),
        ("eligible", "text/* image/png,application/pdf", ("text/*", "image/png", "application/pdf")),
        ("allow_uid", "exec=1000 exec=1001", ("exec=1000", "exec=1001")),
        ("trust_timeline", "1", True),
        ("tenant", "", None),
    ],
)
def test_variables_are_texts_that_people_write(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    monkeypatch.setenv(PREFIX + name.upper(), text)
    assert getattr(read_settings({"out_dir": str(out_dir)}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("idle_exit", "-1"),
        ("idle_exit", "soon"),
        ("keep_bytes", "much"),
        ("log_level", "loud"),
        ("eligible", "everything"),
        ("allow_uid", "root=0"),
        ("tenant", "a\nb"),
        ("nonsense", "1"),
    ],
)
def test_a_bad_value_is_named_with_its_source(out_dir: Path, name: str, value: str) -> None:
    with pytest.raises(BadSettings, match=rf"{name} \(from --{name.replace('_', '-')}\)"):
        read_settings({"out_dir": str(out_dir), name: value})


def test_variables_of_clients_are_no_settings(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_SIDECAR_FD", "3")
    assert read_settings({"out_dir": str(out_dir)}).idle_exit == 600


def test_what_a_door_must_know_cannot_stand_in_the_file(out_dir: Path) -> None:
    (out_dir.parent / NAME).write_text("socket_dir = '/run/elsewhere'\n")
    with pytest.raises(BadSettings, match="--socket-dir"):
        read_settings({"out_dir": str(out_dir)})


def test_settings_are_frozen(out_dir: Path) -> None:
    settings = read_settings({"out_dir": str(out_dir)})
    with pytest.raises(ValidationError):
        settings.idle_exit = 1  # type: ignore[misc]


def test_identity_and_admissions_are_told_in_the_daemons_terms(out_dir: Path) -> None:
    flags = {"out_dir": str(out_dir), "tenant": "acme", "allow_uid": ("exec=1000", "exec=1001", "editor=7")}
    settings = read_settings(flags)
    assert settings.identity == {"tenant": "acme"}
    assert settings.allowed == {"exec": frozenset({1000, 1001}), "editor": frozenset({7})}


# The store --------------------------------------------------------------------------------------------------------


def test_files_are_hosted_in_the_state_folder_unless_told_otherwise(out_dir: Path, tmp_path: Path) -> None:
    settings = read_settings({"out_dir": str(out_dir)})
    assert settings.store == f"{settings.state_dir}/store"
    assert settings.object_store == StoreSettings(uri=settings.store)
    assert source_of(settings, "store") == "default"
    (tmp_path / "link").symlink_to(tmp_path / "state")
    elsewhere = read_settings({"out_dir": str(out_dir), "state_dir": str(tmp_path / "link")})
    assert elsewhere.store == str(tmp_path / "state/store")


@pytest.mark.parametrize(
    ("text", "store"),
    [
        ("s3://bucket/pre/fix/", "s3://bucket/pre/fix"),
        ("s3://bucket", "s3://bucket"),
        ("none", "none"),
        ("/srv//store/", "/srv/store"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("~/store", os.path.realpath(os.path.expanduser("~/store"))),
        ("store", os.path.realpath("store")),
    ],
)
def test_a_store_is_a_folder_a_bucket_or_none(out_dir: Path, text: str, store: str) -> None:
    assert read_settings({"out_dir": str(out_dir), "store": text}).store == store


def test_without_a_store_nothing_is_hosted(out_dir: Path) -> None:
    assert read_settings({"out_dir": str(out_dir), "store": "none"}).object_store is None


def test_all_that_is_set_about_a_store_comes_together(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (out_dir.parent / NAME).write_text("store = 's3://bucket/p'\nstore_region = 'eu-central-1'\n")
    monkeypatch.setenv("ARTIFACT_SIDECAR_STORE_ENDPOINT_URL", "https://s3.example.com/")
    flags = {
        "store_profile": "ours",
        "store_ca_bundle": "/ca.pem",
        "store_public_endpoint_url": "https://files.example",
    }
    settings = read_settings({"out_dir": str(out_dir), **flags})
    assert settings.object_store == StoreSettings(
        uri="s3://bucket/p",
        endpoint_url="https://s3.example.com",
        region="eu-central-1",
        profile="ours",
        ca_bundle="/ca.pem",
        public_endpoint_url="https://files.example",
    )
    assert source_of(settings, "store_endpoint_url") == "ARTIFACT_SIDECAR_STORE_ENDPOINT_URL"


@pytest.mark.parametrize("place", ["{out}", "{out}/store", "{out}/../link/x", "{out}/..", "file://{out}/x"])
def test_a_store_is_neither_inside_out_dir_nor_around_it(out_dir: Path, place: str) -> None:
    (out_dir.parent / "link").symlink_to(out_dir)
    with pytest.raises(BadSettings, match="store must not be inside OUT_DIR"):
        read_settings({"out_dir": str(out_dir), "store": place.format(out=out_dir)})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("store", "ftp://host/x", "a store is a folder or s3://"),
        ("store", "s3://key:hush@bucket", "secrets are refused"),
        ("store", "s3://bucket/../x", "no `..`"),
        ("store_endpoint_url", "https://key:hush@host", "secrets are refused"),
        ("store_endpoint_url", "host:9000", "an endpoint is"),
        ("store_public_endpoint_url", "https://key:hush@host", "secrets are refused"),
        ("store_profile", "a\nb", "control character"),
    ],
)
def test_a_store_that_cannot_be_is_refused_and_no_secret_repeated(
    out_dir: Path, name: str, value: str, says: str
) -> None:
    with pytest.raises(BadSettings, match=says) as refused:
        read_settings({"out_dir": str(out_dir), name: value})
    assert str(refused.value).startswith(f"{name} (from --{name.replace('_', '-')})")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("given", [["{a}", "{link}"], "{a}:{link}", ("{a}", "", "{link}")])
def test_attachments_may_come_from_several_folders(
    out_dir: Path, tmp_path: Path, given: str | list[str] | tuple[str, ...]
) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    named = {"a": str(tmp_path / "a b"), "link": str(tmp_path / "link")}
    flags = given.format(**named) if isinstance(given, str) else [one.format(**named) for one in given]
    settings = read_settings({"out_dir": str(out_dir), "attach_root": flags})
    assert settings.attach_roots == (str(tmp_path / "a b"), str(tmp_path / "a b"))
    assert read_settings({"out_dir": str(out_dir)}).attach_roots == ()


# The index


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
def test_the_index_is_a_file_of_the_state_folder_unless_it_is_named(out_dir: Path, tmp_path: Path) -> None:
    flags = {"out_dir": str(out_dir), "state_dir": str(tmp_path / "state")}
    assert read_settings(flags).index_location == str(tmp_path / "state" / "index.db")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_settings({**flags, "index": str(tmp_path / "link" / "i.db")}).index_location == str(
        tmp_path / "real" / "i.db"
    )
    url = "postgresql://me@db.example.com/agents"
    assert read_settings({**flags, "index": url}).index_location == url


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
@pytest.mark.parametrize("index", ["mysql://me:secret@host/db", "postgresql://me:sec ret@host", "x\0y"])
def test_an_index_that_cannot_be_is_refused_without_repeating_it(out_dir: Path, index: str) -> None:
    with pytest.raises(BadSettings, match="index") as refused:
        read_settings({"out_dir": str(out_dir), "index": index})
    assert "sec" not in str(refused.value)


@pytest.mark.rule("journal.state-is-never-inside-out-dir")
def test_the_index_is_not_inside_out_dir(out_dir: Path) -> None:
    with pytest.raises(BadSettings, match="index must not be inside OUT_DIR"):
        read_settings({"out_dir": str(out_dir), "index": str(out_dir / "deep" / "index.db")})


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
def test_a_password_is_taken_from_a_flag_and_shown_nowhere(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me:s3same@db.example.com/agents"
    flagged = read_settings({"out_dir": str(out_dir), "index": url})
    monkeypatch.setenv(PREFIX + "INDEX", url)
    for settings in (flagged, read_settings({"out_dir": str(out_dir)})):
        assert settings.index_location == url
        listed = {one.name: one.value for one in settings.listed()}
        assert listed["index"] == "postgresql://me@db.example.com/agents"
        assert "s3same" not in f"{settings!r}{settings}{settings.listed()}"


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
def test_a_password_in_the_file_is_refused(out_dir: Path) -> None:
    file = out_dir.parent / NAME
    file.write_text("index = 'postgresql://me:s3same@db.example.com/agents'\n")
    with pytest.raises(BadSettings, match="password") as refused:
        read_settings({"out_dir": str(out_dir)})
    assert "s3same" not in str(refused.value)
    file.write_text("index = 'postgresql://me@db.example.com/agents'\n")
    assert read_settings({"out_dir": str(out_dir)}).index == "postgresql://me@db.example.com/agents"
