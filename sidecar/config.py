"""The settings: read once, from flags, then `ARTIFACT_SIDECAR_*` variables, then the file beside OUT_DIR; then frozen.

Every value remembers where it came from, so that `doctor` can say it (spec section 13).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import platformdirs
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, SettingsConfigDict

from sidecar import store_memory
from sidecar.core.limits import KEEP_BYTES, LEASE_SECONDS, LONGEST_LEASE
from sidecar.settings_file import BadSettings, read_beside
from sidecar.store_memory import recall, remember
from sidecar.stores.index_location import IndexFile, holds_secret, parse_index, shown
from sidecar.stores.location import FolderPlace, StoreSettings, check_endpoint, parse_place
from sidecar.wording import problems

PREFIX = "ARTIFACT_SIDECAR_"
APPLICATION = "artifact-sidecar"
NO_STORE = "none"
INDEX_NAME = "index.db"


def _words(value: object) -> object:
    """Lists may come as one text, as variables do: words between blanks or commas."""
    return tuple(re.split(r"[\s,]+", value.strip())) if isinstance(value, str) and value.strip() else value


def _real(value: object) -> object:
    return os.path.realpath(os.path.expanduser(value)) if isinstance(value, str) and value else value


def _folders(value: object) -> object:
    """Folders may come as one text, as variables do: between colons, as in PATH, since their names may hold blanks."""
    given = value.split(os.pathsep) if isinstance(value, str) else value
    return tuple(_real(one) for one in given if one) if isinstance(given, list | tuple) else given


def _store(value: object) -> object:
    """A folder as its real path; a bucket and `none` as they are. Raises ValueError."""
    if not isinstance(value, str) or value in ("", NO_STORE):
        return value
    place = parse_place(value if "://" in value else str(_real(value)))
    return _real(place.path) if isinstance(place, FolderPlace) else value.rstrip("/")


def _index(value: object) -> object:
    """A file as its real path; a server as it is. Raises ValueError, which never repeats what may hold a password."""
    if not isinstance(value, str) or value == "":
        return value
    place = parse_index(value if "://" in value else str(_real(value)))
    return str(_real(place.path)) if isinstance(place, IndexFile) else value


# A door finds the daemon without reading the file, and the file is found by OUT_DIR.
_NOT_IN_THE_FILE = frozenset({"socket_dir", "out_dir"})

Folder = Annotated[str, BeforeValidator(_real), StringConstraints(min_length=1)]
Endpoint = Annotated[str, AfterValidator(check_endpoint)]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,256}$")]
Part = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")]
MimePattern = Annotated[str, StringConstraints(pattern=r"^[a-z]+/(\*|[a-z0-9][a-z0-9.+-]*)$")]
Admission = Annotated[str, StringConstraints(pattern=r"^(runtime|renderer|exec|editor)=[0-9]{1,10}$")]


class Setting(NamedTuple):
    """One line of `doctor`: what is set, to what, and by whom."""

    name: str
    value: object
    source: str


class Settings(BaseSettings):
    """How one workspace is served. Made by `read_settings`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    out_dir: Folder = Field(description="The workspace.")
    state_dir: Folder = Field(default="", description="Journal, kept versions and log; never inside OUT_DIR.")
    socket_dir: Folder | None = Field(default=None, description="Where the sockets' folder is made.")
    idle_exit: Annotated[float, Field(ge=0)] = Field(
        default=600.0, description="Seconds after its last client that the daemon ends; 0 means never."
    )
    keep_bytes: ByteSize = Field(default=ByteSize(KEEP_BYTES), description="How much of old versions is kept.")
    eligible: Annotated[tuple[MimePattern, ...], NoDecode, BeforeValidator(_words)] = Field(
        default=("text/*", "image/*", "application/pdf"), description="Media types that get a source number."
    )
    context_mirror: bool = Field(
        default=False, description="Copy current attachments to current_turn/attachments/ for older programs."
    )
    trust_timeline: bool = Field(default=False, description="Take hosting fields from a timeline.json in OUT_DIR.")
    store: Annotated[str, BeforeValidator(_store)] = Field(
        default="", description="Where files are hosted: a folder, s3://bucket/prefix, or none."
    )
    store_endpoint_url: Endpoint | None = Field(
        default=None, description="The service that has the bucket, if not AWS."
    )
    store_region: Name | None = Field(default=None, description="The bucket's region.")
    store_profile: Name | None = Field(default=None, description="The profile that boto3 takes credentials from.")
    store_ca_bundle: Folder | None = Field(default=None, description="Certificates that the endpoint is trusted by.")
    store_public_endpoint_url: Endpoint | None = Field(
        default=None, description="The endpoint in links for people, where they reach the store by another name."
    )
    index: Annotated[str, BeforeValidator(_index)] = Field(
        default="", repr=False, description="Where conversations are found: a file, or postgresql://user@host/database."
    )
    persist_executions: bool = Field(
        default=True, description="Archive the program of every call, and what it made, in the store."
    )
    lease_seconds: Annotated[float, Field(ge=1, le=LONGEST_LEASE)] = Field(
        default=LEASE_SECONDS,
        description="Seconds after which another daemon goes on with a conversation whose writer does not answer.",
    )
    attach_root: Annotated[tuple[Folder, ...], NoDecode, BeforeValidator(_folders)] = Field(
        default=(), description="A folder that attachments may be taken from, beside OUT_DIR."
    )
    allow_uid: Annotated[tuple[Admission, ...], NoDecode, BeforeValidator(_words)] = Field(
        default=(), description="ROLE=UID: other users that may come by a role's socket."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="How much is logged.")
    record: Folder | None = Field(default=None, description="A file that gets every message, for debugging.")
    tenant: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    project: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    user_id: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    user_type: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    conversation_id: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    bundle_id: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")
    title: Part | None = Field(default=None, description="Identity, where turn/begin gives none.")

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _state_has_a_place(cls, values: Any) -> Any:
        if not values.get("state_dir"):
            values = {**values, "state_dir": default_state_dir(os.path.realpath(values["out_dir"]))}
        if not values.get("store") and isinstance(values["state_dir"], str):
            values = {**values, "store": os.path.join(str(_real(values["state_dir"])), "store")}
        if not values.get("index") and isinstance(values["state_dir"], str):
            values = {**values, "index": os.path.join(str(_real(values["state_dir"])), INDEX_NAME)}
        return values

    @model_validator(mode="after")
    def _nothing_of_ours_is_inside_out_dir(self) -> Self:
        for name, path in (("state_dir", self.state_dir), ("socket_dir", self.socket_dir), ("record", self.record)):
            if path is not None and is_inside(path, self.out_dir):
                raise ValueError(f"{name} must not be inside OUT_DIR, which a sandbox may own")
        if os.path.isabs(self.index) and is_inside(self.index, self.out_dir):
            raise ValueError("index must not be inside OUT_DIR, which a sandbox may own")
        folder = self.store if os.path.isabs(self.store) else None
        if folder is not None and (is_inside(folder, self.out_dir) or is_inside(self.out_dir, folder)):
            raise ValueError("store must not be inside OUT_DIR, which a sandbox may own, nor around it")
        return self

    def listed(self) -> tuple[Setting, ...]:
        """Every setting with its value and its source, in order. The index is shown without its password."""
        values = {name: getattr(self, name) for name in type(self).model_fields} | {"index": shown(self.index)}
        return tuple(Setting(name, value, self._sources.get(name, "default")) for name, value in values.items())

    @property
    def identity(self) -> dict[str, str]:
        """The parts of the identity that are set (spec section 10)."""
        names = ("tenant", "project", "user_id", "user_type", "conversation_id", "bundle_id", "title")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def object_store(self) -> StoreSettings | None:
        """All that is set about the store; None when files are not to be hosted."""
        if self.store == NO_STORE:
            return None
        return StoreSettings(
            uri=self.store,
            endpoint_url=self.store_endpoint_url,
            region=self.store_region,
            profile=self.store_profile,
            ca_bundle=self.store_ca_bundle,
            public_endpoint_url=self.store_public_endpoint_url,
        )

    @property
    def index_location(self) -> str:
        """The index as `open_index` takes it. It may hold a password: show `shown(…)` of it instead."""
        return self.index

    @property
    def forgets_index(self) -> bool:
        """Whether the next daemon has to be told of the index again, because its password is not written down."""
        return holds_secret(self.index)

    def remember_store(self) -> None:
        """Have the next daemon find the store and the index, where somebody named them. Raises OSError."""
        named = [name for name in store_memory.STORE if "store" in self._sources]
        if "index" in self._sources:
            named += [] if self.forgets_index else [store_memory.INDEX]
        if named or "index" in self._sources:
            remember(self.state_dir, {name: getattr(self, name) for name in named})

    @property
    def attach_roots(self) -> tuple[str, ...]:
        """The folders that attachments may be taken from, beside OUT_DIR."""
        return self.attach_root

    @property
    def allowed(self) -> dict[str, frozenset[int]]:
        """Role -> the other uids that are let in."""
        pairs = [entry.split("=") for entry in self.allow_uid]
        return {role: frozenset(int(uid) for name, uid in pairs if name == role) for role, _ in pairs}


def read_settings(flags: Mapping[str, object]) -> Settings:
    """The settings of the workspace that `flags["out_dir"]`, else OUT_DIR, names. Raises BadSettings.

    `flags` are by name of the setting; None means that the flag was not given.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    out_dir = given.pop("out_dir", None) or os.environ.get("OUT_DIR")
    if not out_dir:
        raise BadSettings("no workspace: give --out-dir DIR or set OUT_DIR")
    root = os.path.realpath(str(out_dir))
    if not os.path.isdir(root):
        raise BadSettings(f"there is no folder {out_dir}")
    file = read_beside(root)
    if holds_secret(str(file.values.get("index", ""))):
        raise BadSettings(f"{file.path} holds a password in index: secrets do not belong in this file")
    for name in _NOT_IN_THE_FILE & file.values.keys():
        raise BadSettings(f"{file.path} sets {name}, which doors cannot read there: use --{name.replace('_', '-')}")
    variables = {name: value for name, value in EnvSettingsSource(Settings)().items() if name != "out_dir"}
    sources = {
        **dict.fromkeys(file.values, file.path),
        **{name: PREFIX + name.upper() for name in variables},
        **{name: f"--{name.replace('_', '-')}" for name in given},
        "out_dir": "--out-dir" if flags.get("out_dir") else "OUT_DIR",
    }
    try:
        settings = Settings(**{**file.values, **variables, **given, "out_dir": root})
        if known := _recalled(settings.state_dir, sources):
            sources = {**dict.fromkeys(known, os.path.join(settings.state_dir, store_memory.NAME)), **sources}
            settings = Settings(**{**known, **file.values, **variables, **given, "out_dir": root})
    except ValidationError as error:
        raise BadSettings("; ".join(_faults(error, sources))) from None
    settings._sources.update(sources)
    return settings


def index_from(given: str) -> str:
    """The index as it is named on a command line, where no workspace is named beside it. Raises BadSettings."""
    try:
        return str(_index(given))
    except ValueError as fault:
        raise BadSettings(f"index: {fault}") from None


def _recalled(state_dir: str, named: Mapping[str, str]) -> dict[str, object]:
    """What was remembered of the store and of the index, each where nobody names it now."""
    if {"store", "index"} <= named.keys():
        return {}
    known = recall(state_dir)
    return {name: value for name, value in known.items() if ("index" if name == "index" else "store") not in named}


def default_state_dir(out_dir: str) -> str:
    """A folder below the user's state folder, named after the workspace; the hash tells namesakes apart."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(out_dir)) or "workspace"
    short = hashlib.sha256(os.fsencode(out_dir)).hexdigest()[:12]
    return str(platformdirs.user_state_path(APPLICATION) / f"{name[:64]}-{short}")


def is_inside(path: str, folder: str) -> bool:
    """Whether a real path is `folder` or below it."""
    return os.path.commonpath((path, folder)) == folder


def _faults(error: ValidationError, sources: Mapping[str, str]) -> Iterable[str]:
    for where, problem in problems(error.errors(include_url=False, include_input=False)).items():
        name = where.partition(".")[0]
        yield (f"{name} (from {sources.get(name, 'the settings')}): " if name else "") + problem
