"""Rules and proofs, both ways: no rule without a proof, no proof without a rule."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter

import pytest

from tests.tidy.tools import run_module
from tests.tidy.tree import PROJECT

pytestmark = pytest.mark.rule("house.rules-are-proved-both-ways")

SOURCE = re.compile(r"(seed 00[0-4], .+|spec \d{1,2}(, .+)?|issue \d, .+|ARCHITECTURE)")
ID = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z0-9]+(-[a-z0-9]+)*")


def rules() -> list[dict[str, object]]:
    return tomllib.loads((PROJECT / "tests/rules.toml").read_text("utf-8"))["rule"]


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Rule id -> the tests that prove it, as pytest collects them; a conformance case is a test too."""
    file = tmp_path_factory.mktemp("rules") / "proofs.json"
    run_module("pytest", "--collect-only", "-q", "-p", "tests.tidy.collecting", "--proofs-to", str(file), "tests")
    return json.loads(file.read_text("utf-8"))


def test_every_rule_is_proved(proofs: dict[str, list[str]]) -> None:
    unproved = [rule["id"] for rule in rules() if "status" not in rule and rule["id"] not in proofs]
    assert not unproved, f"{len(unproved)} rules without a proof:\n" + "\n".join(map(str, unproved))


def test_every_proof_names_a_rule(proofs: dict[str, list[str]]) -> None:
    known = {rule["id"] for rule in rules()}
    strange = {rule: tests for rule, tests in proofs.items() if rule not in known}
    assert not strange


def test_a_rule_that_is_proved_is_not_marked_later(proofs: dict[str, list[str]]) -> None:
    kept = [rule["id"] for rule in rules() if rule.get("status") == "later" and rule["id"] in proofs]
    assert not kept, "these are proved; take `later` away, or the proof if it is none"


def test_ids_are_areas_and_sentences_in_kebab_case() -> None:
    assert [rule["id"] for rule in rules() if not ID.fullmatch(str(rule["id"]))] == []


def test_no_id_stands_twice() -> None:
    counted = Counter(rule["id"] for rule in rules())
    assert [rule for rule, times in counted.items() if times > 1] == []


def test_every_rule_says_where_it_is_written() -> None:
    wrong = {r["id"]: r["source"] for r in rules() if not all(map(SOURCE.fullmatch, str(r["source"]).split("; ")))}
    assert wrong == {}


def test_every_rule_is_one_sentence_of_ours() -> None:
    assert [rule["id"] for rule in rules() if not str(rule["says"]).endswith(".")] == []


def test_a_rule_for_later_names_its_issue() -> None:
    later = [rule for rule in rules() if rule.get("status") == "later"]
    assert [rule["id"] for rule in later if rule.get("issue") not in range(3, 9)] == []


def test_a_rule_we_do_not_follow_says_why_and_what_we_do_instead() -> None:
    by_id = {rule["id"]: rule for rule in rules()}
    differing = [rule for rule in by_id.values() if rule.get("status") == "differs"]
    assert [rule["id"] for rule in differing if not rule.get("why") or rule.get("instead") not in by_id] == []


def test_a_rule_has_no_field_that_nobody_reads() -> None:
    known = {"id", "source", "says", "status", "issue", "why", "instead"}
    assert [rule["id"] for rule in rules() if not rule.keys() <= known] == []
    assert {rule.get("status", "later") for rule in rules()} <= {"later", "differs"}
