"""The blocks that tell of the older context: artifacts, slots, events and the budget of a turn (seed 002).

They are appended like any other block and keep every field. Those named here are checked, each at its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from typing_extensions import TypeAliasType

from protocol.base import PATH_CHARS, PATHS, CallId, Maybe, Number, Sid
from protocol.records import Block, SourceRow

ContextKind = TypeAliasType("ContextKind", Literal["inline", "file", "search"])
ContextEventKind = TypeAliasType(
    "ContextEventKind",
    Literal["decision", "param_binding", "tool_started", "tool_finished", "slot_mapped", "exit", "error"],
)

ContextName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
Producer = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.:-]{0,127}$")]
OlderPathText = Annotated[str, StringConstraints(min_length=1, max_length=PATH_CHARS)]

FILES_ONLY = frozenset({"codegen", "exec"})


class ContextRecord(BaseModel):
    """What all of them share: fields that are not named are kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class FileValue(ContextRecord):
    """What an artifact of kind `file` holds beside its surrogate."""

    path: OlderPathText = Field(description="The file: relative to OUT_DIR, or the bare name of one of its turn's.")
    filename: Maybe[str] = Field(default=None, description="Its name for people.")
    mime: Maybe[str] = Field(default=None, description="Its media type.")
    format: Maybe[str] = Field(default=None, description="Its format, `pdf` for example.")
    text: Maybe[str] = Field(default=None, description="Its text, where there is no `text_surrogate`.")


def _only_files(schema: dict[str, Any]) -> None:
    """What the validators below say, for those who read the schema alone."""
    made = {"properties": {"producer": {"enum": sorted(FILES_ONLY)}}, "required": ["producer"]}
    files = {"properties": {"artifact_kind": {"const": "file"}}}
    schema["allOf"] = [{"if": made, "then": files}]


class ContextArtifact(ContextRecord):
    """A block of type `context.artifact`: what a tool made. It stands at `ar:<turn>.context.artifact.<id>`."""

    model_config = ConfigDict(json_schema_extra=_only_files)

    artifact_id: ContextName = Field(description="Its name within its turn. Told again, it is its next version.")
    artifact_kind: ContextKind = Field(
        description="`inline` is a value, `file` a file with its text surrogate, `search` a list of source records."
    )
    value: object = Field(
        description="What it holds: any JSON for `inline`, a FileValue for `file`, rows or an object of rows for "
        "`search`."
    )
    text_surrogate: Maybe[str] = Field(default=None, description="What a file says, as text; it speaks for the file.")
    summary: Maybe[str] = Field(default=None, description="What it is, in a few words.")
    producer: Maybe[Producer] = Field(
        default=None, description="What made it. `codegen` and `exec` make files and nothing else."
    )
    tool_id: Maybe[str] = Field(default=None, description="The tool that made it.", max_length=256)
    tool_call_id: Maybe[CallId] = Field(default=None, description="The call that made it.")
    tool_call_item_index: Maybe[Number] = Field(default=None, description="Which of the call's results it is.")
    inputs: Maybe[dict[str, object]] = Field(default=None, description="What the tool was given.")
    sources_used: Maybe[list[Sid | SourceRow]] = Field(
        default=None, description="The sources it was made of, as numbers or rows.", max_length=PATHS
    )
    content_lineage: Maybe[list[OlderPathText]] = Field(
        default=None, description="The paths it was made of. Kept in today's names.", max_length=PATHS
    )
    call_record: Maybe[dict[str, object]] = Field(default=None, description="Where the call is recorded.")
    error: Maybe[str | dict[str, object]] = Field(default=None, description="What went wrong when it was made.")

    @field_validator("value")
    @classmethod
    def _of_its_kind(cls, value: object, info: ValidationInfo) -> object:
        kind = info.data.get("artifact_kind")
        if kind == "file":
            FileValue.model_validate(value)
        elif kind == "search" and not _holds_rows(value):
            raise ValueError("a search holds a list of objects, or an object of them")
        return value

    @field_validator("producer")
    @classmethod
    def _makes_such(cls, producer: str | None, info: ValidationInfo) -> str | None:
        if producer in FILES_ONLY and info.data.get("artifact_kind", "file") != "file":
            raise ValueError("programs produce files only")
        return producer


def _holds_rows(value: object) -> bool:
    items = list(cast("dict[str, object]", value).values()) if isinstance(value, dict) else value
    return isinstance(items, list) and all(isinstance(item, dict) for item in cast("list[object]", items))


class SlotValue(ContextRecord):
    """What a deliverable holds."""

    type: Literal["inline", "file"] = Field(default="inline", description="Whether it is a text or a file.")
    text: Maybe[str] = Field(default=None, description="Its text, or what its file says.")
    format: Maybe[str] = Field(default=None, description="Its format.")
    mime: Maybe[str] = Field(default=None, description="Its media type.")
    path: Maybe[OlderPathText] = Field(default=None, description="Its file, relative to OUT_DIR.")
    filename: Maybe[str] = Field(default=None, description="Its file's name for people.")
    description: Maybe[str] = Field(default=None, description="What it is to be.")
    summary: Maybe[str] = Field(default=None, description="What it is, in a few words.")
    draft: Maybe[bool] = Field(default=None, description="True when it is not what it is to be.")
    gaps: Maybe[str | list[str]] = Field(default=None, description="What it lacks.")
    sources_used: Maybe[list[Sid | SourceRow]] = Field(
        default=None, description="The sources it was made of.", max_length=PATHS
    )


class ContextSlot(ContextRecord):
    """A block of type `context.slot`: a deliverable. It stands at `ar:<turn>.context.slot.<name>`."""

    slot: ContextName = Field(description="Its name within its turn.")
    value: SlotValue = Field(description="What it holds.")
    content_lineage: Maybe[list[OlderPathText]] = Field(
        default=None, description="The paths it was mapped from. Kept in today's names.", max_length=PATHS
    )


class ContextEvent(ContextRecord):
    """A block of type `context.event`: something happened. It stands at `ar:<turn>.context.event.<event>`."""

    event: ContextEventKind = Field(description="What happened.")
    data: dict[str, object] = Field(default={}, description="What there is to say of it.")
    tool_call_id: Maybe[CallId] = Field(default=None, description="The call it is about.")


class ContextBudget(ContextRecord):
    """A block of type `context.budget`: how much may be used. It stands at `ar:<turn>.context.budget`."""

    caps: dict[str, float] = Field(description="How much of each there may be.")
    used: dict[str, float] = Field(default={}, description="How much of each is used.")


CONTEXT_BLOCKS: dict[str, type[ContextRecord]] = {
    "context.artifact": ContextArtifact,
    "context.slot": ContextSlot,
    "context.event": ContextEvent,
    "context.budget": ContextBudget,
}


def _checked(block: Block) -> Block:
    """A block of the older context must be one; any other may be anything. Faults are told at their places."""
    model = CONTEXT_BLOCKS.get(block["type"])
    if model is not None:
        model.model_validate(block)
    return block


AppendedBlock = Annotated[Block, AfterValidator(_checked)]


def told_apart(plain: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an appended block, from that of any block: what `_checked` says, as a rule per type."""
    rules = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/{model.__name__}"},
        }
        for name, model in CONTEXT_BLOCKS.items()
    ]
    rows = {"type": "object"}
    values = {
        "file": {"$ref": f"#/$defs/{FileValue.__name__}"},
        "search": {"anyOf": [{"type": "array", "items": rows}, {"type": "object", "additionalProperties": rows}]},
    }
    of_kinds = [
        {
            "if": {
                "properties": {"type": {"const": "context.artifact"}, "artifact_kind": {"const": kind}},
                "required": ["type", "artifact_kind"],
            },
            "then": {"properties": {"value": value}},
        }
        for kind, value in values.items()
    ]
    return {"allOf": [plain, *rules, *of_kinds]}
