"""What is wrong with a value, in our own plain words, whatever the library that found it would say.

A sentence names the bound or the choice that the value missed, and never the value: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NOTHING_KNOWN = "is not what belongs there"


def problems(faults: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By the path of each field (`a.0.b`; empty for the whole) what is wrong with it, of pydantic's `errors()`.

    A field that may be of several types has one path and one sentence, however many types were tried.
    """
    told: dict[str, list[str]] = {}
    for fault in faults:
        kind = str(fault["type"])
        said = told.setdefault(_place(fault["loc"], strange=kind == "extra_forbidden"), [])
        if (sentence := problem(kind, fault.get("ctx", {}))) not in said:
            said.append(sentence)
    return {where: ", or ".join(said) for where, said in told.items()}


def problem(kind: str, context: Mapping[str, Any]) -> str:
    """A sentence to follow the name of a field, by pydantic's type of the fault and its context."""
    if kind == "value_error":
        return str(context.get("error", "")) or NOTHING_KNOWN
    pattern = _PATTERNS.get(str(context.get("pattern"))) if kind == "string_pattern_mismatch" else None
    if pattern is not None:
        return pattern
    said = _SENTENCES.get(kind, NOTHING_KNOWN)
    try:
        return said.format_map({name: _plain(value) for name, value in context.items() if name in _BOUNDS})
    except KeyError:
        return NOTHING_KNOWN


def _place(steps: Sequence[int | str], *, strange: bool) -> str:
    """The steps to a field, without the types tried on the way; a `strange` field has a name that is not ours."""
    ours = [step for step in steps[:-1] if not _is_type(step)]
    ours += [step for step in steps[-1:] if strange or not _is_type(step)]
    return ".".join(str(step)[:64] for step in ours)  # a key that somebody made up may be long


def _is_type(step: int | str) -> bool:
    return isinstance(step, str) and _TYPE.fullmatch(step) is not None


_TYPE = re.compile(r"constrained-\w+|(?:list|dict|literal|tuple)\[.*\]|str|int|float|bool|[A-Z][A-Za-z]+")


def _plain(bound: object) -> str:
    """A bound as people write it: a float that is whole needs no point."""
    return f"{bound:.0f}" if isinstance(bound, float) and bound.is_integer() else str(bound)


# What the context says of the declaration. All else in it may be what was sent.
_BOUNDS = frozenset(
    {"gt", "ge", "lt", "le", "multiple_of", "expected", "pattern", "min_length", "max_length", "discriminator"}
)

_SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "string_unicode": "must be a text in UTF-8",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "may have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "may be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "none_required": "must be null",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length} item(s)",
    "too_long": "may have at most {max_length} items",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "union_tag_invalid": "is of a kind that is not known",
    "union_tag_not_found": "must say its {discriminator}",
    "bytes_type": "must be a text",
    "byte_size": "must be a number of bytes such as 5GiB",
    "byte_size_unit": "must be a number of bytes such as 5GiB",
    "path_type": "must be a path",
    "url_type": "must be a URL",
    "recursion_loop": "holds itself",
}

_PATTERNS = {
    r"^[A-Za-z0-9_-]{1,128}$": "must be 1 to 128 of the characters A-Z a-z 0-9 _ and -",
    r"^[A-Za-z0-9_-]{0,128}$": "may be at most 128 of the characters A-Z a-z 0-9 _ and -",
    r"^([0-9a-f]{64})?$": "must be a sha256 in 64 hexadecimal digits, or empty",
    r"^[0-9a-f]{64}$": "must be a sha256 in 64 hexadecimal digits",
    r"^[a-z][a-z0-9_.:-]{0,63}$": "must be a word of at most 64 characters: a-z first, then a-z 0-9 _ . : and -",
    r"^[^\x00-\x1f\x7f-\x9f]{1,128}$": "must be 1 to 128 characters, none of them a control character",
    r"^[0-9]{1,6}\.[0-9]{1,6}$": "must be a version such as 1.4",
    r"^[!-~]{1,107}$": "must be 1 to 107 visible ASCII characters",
    r"^[A-Za-z][A-Za-z0-9_.:-]{0,127}$": "must be a name of at most 128 characters: a letter, then A-Z a-z 0-9 _.:-",
    r"^[^\x00-\x1f\x7f]{1,128}$": "must be 1 to 128 characters, none of them a control character",
    r"^[^\x00-\x1f\x7f]{1,256}$": "must be 1 to 256 characters, none of them a control character",
    r"^[a-z]+/(\*|[a-z0-9][a-z0-9.+-]*)$": "must be a media type such as text/plain or image/*",
    r"^(runtime|renderer|exec|editor)=[0-9]{1,10}$": "must be a role and a uid, such as exec=1001",
    r"^[^\x00-\x1f\x7f]+$": "must be a text without control characters",
}
