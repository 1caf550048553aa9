"""What Image Builder takes as a component's document.

Source: Image Builder user guide, "Use the AWSTOE component document framework" (document schema)
and "Action modules supported by AWSTOE component manager" (ExecuteBash, S3Download).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

PHASES = ("build", "validate", "test")
OF_DOCUMENT = {"name", "description", "schemaVersion", "phases", "parameters", "constants"}
OF_STEP = {"name", "action", "timeoutSeconds", "onFailure", "maxAttempts", "inputs", "if", "loop"}
ON_FAILURE = ("Abort", "Continue", "Ignore")
# What it puts in itself: references to parameters and to what other steps have said.
REFERENCE = "{{"
OF_DOWNLOAD = {"source", "destination", "overwrite", "expectedBucketOwner"}


def faults_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Why Image Builder would refuse a document, or read it otherwise than it is meant."""
    yield from _unknown(document, OF_DOCUMENT, "document")
    if str(document.get("schemaVersion")) != "1.0":
        yield f"schemaVersion {document.get('schemaVersion')}"
    phases = document.get("phases", [])
    names = [each.get("name") for each in phases]
    if not names or len(names) != len(set(names)) or not set(names) <= set(PHASES):
        yield f"phases {names}"
    for phase in phases:
        yield from _unknown(phase, {"name", "steps"}, phase["name"])
        steps = [each.get("name") for each in phase["steps"]]
        if not steps or len(steps) != len(set(steps)):
            yield f"{phase['name']}: steps {steps}"
        for step in phase["steps"]:
            yield from _step(step, f"{phase['name']}/{step.get('name')}", _parameters(document))


def _parameters(document: Mapping[str, Any]) -> set[str]:
    """Those that a recipe may set: a list of mappings, each of one name to what it is."""
    return {name for each in document.get("parameters", ()) for name in each}


def _step(step: Mapping[str, Any], place: str, parameters: set[str]) -> Iterator[str]:
    yield from _unknown(step, OF_STEP, place)
    if not isinstance(step.get("timeoutSeconds", 1), int) or step.get("timeoutSeconds", 1) < 1:
        yield f"{place}: timeoutSeconds {step['timeoutSeconds']}"
    if step.get("onFailure", "Abort") not in ON_FAILURE:
        yield f"{place}: onFailure {step['onFailure']}"
    if step.get("action") == "ExecuteBash":
        yield from _commands(step.get("inputs", {}), place)
    elif step.get("action") == "S3Download":
        for each in step.get("inputs", [{}]):
            yield from _download(each, place, parameters)
    else:
        yield f"{place}: action {step.get('action')}"


def _download(asked: Mapping[str, Any], place: str, parameters: set[str]) -> Iterator[str]:
    yield from _unknown(asked, OF_DOWNLOAD, place)
    name = re.fullmatch(r"\{\{ (\w+) \}\}", asked.get("source", ""))
    if not (name and name[1] in parameters) and not asked.get("source", "").startswith("s3://"):
        yield f"{place}: source {asked.get('source')}"
    if not asked.get("destination", "").startswith("/"):
        yield f"{place}: destination {asked.get('destination')}"


def _commands(inputs: Mapping[str, Any], place: str) -> Iterator[str]:
    commands = inputs.get("commands")
    if set(inputs) != {"commands"} or not commands or not isinstance(commands, list):
        yield f"{place}: inputs {set(inputs)}"
        return
    for command in commands:
        if not isinstance(command, str):
            yield f"{place}: a command is no text: {command!r}"
        elif REFERENCE in command:
            yield f"{place}: {REFERENCE} is put in by Image Builder: {command[:60]}"


def _unknown(found: Mapping[str, Any], known: set[str], place: str) -> Iterator[str]:
    if more := set(found) - known:
        yield f"{place}: unknown {', '.join(sorted(more))}"
