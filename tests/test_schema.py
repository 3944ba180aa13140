"""amux schema: it describes what --json prints, and what it once promised stays."""

import json
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from typer.main import get_command

from amux import readers
from amux.cli.app import app
from amux.schema import schemas

AMUX = str(Path(sys.executable).with_name("amux"))
ENOUGH = 3
"""So many sessions of a home are shown whole."""


class TextFile(SingleFileSnapshotExtension):
    """One text file a case, under snapshots/ at the top."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location) -> str:
        return str(Path(__file__).parents[1] / "snapshots" / Path(test_location.filepath).stem)


@pytest.fixture(params=readers.names())
def agent(request):
    return request.param


@pytest.fixture
def home(corpus, tmp_path, agent):
    """Every scenario of an agent in one home."""
    where = tmp_path / "home"
    for path in corpus.scenarios(agent):
        shutil.copytree(path / "home", where, dirs_exist_ok=True, symlinks=True)
    return where


@pytest.fixture
def amux(script_runner, tmp_path):
    """Runs the installed command in a home; its answer comes back as JSON, from stderr when it failed."""

    def run(*arguments: str, home: Path | None = None, status: int = 0):
        ran = script_runner.run([AMUX, "--home", str(home or tmp_path), *arguments])
        assert ran.returncode == status, ran.stderr
        return json.loads(ran.stderr if status else ran.stdout)

    return run


@pytest.fixture
def valid(amux):
    """Asks whether values are what the schema of that name says and nothing beside; times are checked too."""
    schemas = amux("schema")

    def check(name: str, *values: object) -> None:
        validator = jsonschema.Draft202012Validator(closed(schemas[name]), format_checker=times())
        for value in values:
            validator.validate(value)

    return check


def times():
    checker = jsonschema.FormatChecker(formats=())
    checker.checks("date-time")(lambda text: len(text) == len("2026-11-18T09:30:00.000Z") and text.endswith("Z"))
    return checker


def closed(schema):
    """The schema without room for more: what is printed but not published is a mistake today."""
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    return (
        {**found, "additionalProperties": False} if schema.get("type") == "object" and "properties" in schema else found
    )


def test_what_json_prints_is_what_the_schema_says(amux, home, agent, valid):
    listed = amux("sessions", "list", agent, "--subagents", "--json", home=home)
    main = next(one["unifiedId"] for one in listed if one["kind"] == "main")
    word = max((one["title"] for one in listed), key=len).split()[0]
    found = amux("sessions", "search", word, "--agent", agent, "--json", home=home)
    ids = [one["unifiedId"] for one in listed[:ENOUGH]]

    assert ids
    assert found
    valid("summary", *listed)
    valid("hit", *found)
    valid("session", *(amux("sessions", "show", id, "--raw", "--json", home=home) for id in ids))
    valid("cost", amux("cost", "report", "--agent", agent, "--json", home=home))
    valid("cost", amux("cost", "report", "--group-by", "model,day", "--json", home=home))
    valid("agent", *amux("agents", "--json", home=home))
    valid("diff", amux("sessions", "diff", ids[0], ids[-1], "--json", home=home))
    valid("stats", amux("sessions", "diff", ids[0], ids[-1], "--stat", "--json", home=home))
    valid("session", amux("sessions", "export", ids[0], "--json", home=home))
    valid("summary", amux("sessions", "tag", main, "release", "--json", home=home))


@pytest.mark.parametrize("agent", ["claude", "codex"], indirect=True)
@pytest.mark.parametrize("command", ["resume", "fork"])
@pytest.mark.parametrize("into", [[], ["--in", "gemini"]], ids=["itself", "gemini"])
def test_a_launch_is_what_the_schema_says(amux, home, agent, valid, command, into):
    valid("launch", amux("sessions", command, f"{agent}:latest", *into, "--json", home=home))


def test_no_command_prints_what_is_not_looked_at_here():
    """A command that learns --json is to be added to the tests above."""
    looked_at = {"list", "search", "show", "report", "agents", "diff", "export", "tag", "resume", "fork", "schema"}

    assert {
        name for name, one in leaves(get_command(app)) if "--json" in {opt for p in one.params for opt in p.opts}
    } == looked_at
    assert {name for name, _ in leaves(get_command(app))} == looked_at


def leaves(command):
    for name, one in command.commands.items():
        yield from leaves(one) if hasattr(one, "commands") else [(name, one)]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("sessions list nope", 3),
        ("sessions show claude zzzz", 8),
        ("sessions list --since neverland", 2),
        ("sessions list --nope", 2),
        ("schema nope", 2),
    ],
)
def test_errors_are_what_the_schema_says(amux, valid, command, status):
    valid("error", amux(*command.split(), "--json", status=status))


def test_an_unknown_name_is_an_error_that_names_the_known_ones(amux):
    message = amux("schema", "nope", "--json", status=2)["error"]["message"]

    assert [name for name in schemas() if repr(name) not in message] == []


@pytest.mark.parametrize("name", schemas())
def test_a_schema_is_one_and_has_room_for_more(amux, name):
    schema = amux("schema", name)
    jsonschema.Draft202012Validator.check_schema(schema)

    assert schema == amux("schema")[name]
    assert '"additionalProperties": false' not in json.dumps(schema)


def test_a_wrong_value_is_noticed(valid):
    with pytest.raises(jsonschema.ValidationError, match="'mood' was unexpected"):
        valid("agent", {**AGENT, "mood": "good"})
    with pytest.raises(jsonschema.ValidationError, match="'agent' is a required property"):
        valid("summary", {})
    with pytest.raises(jsonschema.ValidationError, match="is not a 'date-time'"):
        valid("agent", {**AGENT, "newest": "2026-11-18T09:30:00+01:00"})
    with pytest.raises(jsonschema.ValidationError, match="is not of type 'integer'"):
        valid("agent", {**AGENT, "sessionCount": "3"})


AGENT = {
    "agent": "vole",
    "title": "Vole",
    "sessionCount": 3,
    "unreadable": 0,
    "stores": [],
    "canResume": True,
    "canFork": False,
    "installed": False,
}


def test_the_order_is_always_the_same(script_runner):
    one, other = (script_runner.run([AMUX, "schema"], env={"PYTHONHASHSEED": seed}) for seed in "12")

    assert one.stdout == other.stdout


# A removed field is a breaking change: what left the snapshot broke programs that read amux's JSON.
def test_published_fields_stay(amux, snapshot):
    told = "\n".join(
        ["A line that goes away breaks programs that read it: fields are only ever added.", *published(amux("schema"))]
    )

    assert told == snapshot(extension_class=TextFile)


def published(schemas):
    """For each schema and each class in it: its fields, their types, and whether they are never left out."""
    told = {}
    for name, schema in schemas.items():
        told[name] = schema
        told.update(schema.get("$defs", {}))
    for name, schema in told.items():
        yield name
        for field, shape in schema["properties"].items():
            always = ", always" if field in schema["required"] else ""
            yield f"  {field}: {kind(shape)}{always}"


def kind(shape) -> str:
    match shape:
        case {"$ref": place}:
            return place.rpartition("/")[2]
        case {"anyOf": some}:
            return " or ".join(map(kind, some))
        case {"enum": values}:
            return " | ".join(values)
        case {"items": items}:
            return f"[{kind(items)}]"
        case {"additionalProperties": values}:
            return f"{{string: {kind(values)}}}"
        case {"properties": fields}:
            return f"{{{', '.join(f'{name}: {kind(one)}' for name, one in fields.items())}}}"
        case {"format": form}:
            return form
        case _:
            return shape.get("type", "any")
