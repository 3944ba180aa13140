"""Sessions, messages and charges as partitioned Parquet data sets, for DuckDB, Spark or BigQuery."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from amux.errors import InvalidValue
from amux.model import Session, SessionSummary
from amux.output.jsonout import plain

BATCH = 200
"""Sessions a file: a few megabytes each, so that neither memory nor the number of files grows without end."""

SESSION = {
    "agent": "string",
    "session_id": "string",
    "unified_id": "string",
    "title": "string",
    "kind": "string",
    "created_at": "time",
    "updated_at": "time",
    "turn_count": "int64",
    "message_count": "int64",
    "model": "string",
    "cwd": "string",
    "git_branch": "string",
    "git_commit": "string",
    "forked_from": "string",
    "parent_id": "string",
    "archived": "bool",
    "agent_version": "string",
    "tags": "strings",
}
MESSAGE = {
    "agent": "string",
    "session_id": "string",
    "position": "int64",
    "role": "string",
    "event": "string",
    "timestamp": "time",
    "content": "string",
    "thinking": "string",
    "model": "string",
    "is_error": "bool",
    "inherited": "bool",
    "tool_calls": "string",
    "tool_call_id": "string",
    "tool_name": "string",
}
CHARGE = {
    "agent": "string",
    "session_id": "string",
    "main_session_id": "string",
    "at": "time",
    "model": "string",
    "provider": "string",
    "calls": "int64",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "thinking_tokens": "int64",
    "cached_tokens": "int64",
    "cache_write_tokens": "int64",
    "usd_recorded": "float64",
    "usd_estimated": "float64",
}


def write(
    sessions: Sequence[SessionSummary],
    whole: Callable[[SessionSummary], Session],
    charges: Callable[[SessionSummary], Sequence[Mapping[str, Any]]],
    directory: Path,
    done: Callable[[int], None],
) -> None:
    """Write `sessions`, `messages` and `charges` below a directory, each partitioned by agent.

    `charges` gives a session's own calls only, so that the sum over the data set counts every call once.
    """
    try:
        from pyarrow import parquet  # noqa: PLC0415, F401
    except ImportError as error:
        raise InvalidValue("Parquet needs pyarrow: pip install 'amux[parquet]'") from error
    if directory.exists() and any(directory.iterdir()):
        raise InvalidValue(f"{directory} is not empty; a data set is written into a directory of its own")
    for start in range(0, len(sessions), BATCH):
        batch = sessions[start : start + BATCH]
        read = [whole(summary) for summary in batch]
        add(directory / "sessions", SESSION, (record(SESSION, one) for one in read), start)
        add(directory / "messages", MESSAGE, (row for one in read for row in messages(one)), start)
        add(directory / "charges", CHARGE, (row for summary in batch for row in charges(summary)), start)
        done(start + len(batch))


def record(columns: Mapping[str, str], value: object) -> dict[str, Any]:
    return {name: getattr(value, name) for name in columns}


def messages(session: Session) -> Iterator[dict[str, Any]]:
    for position, message in enumerate(session.messages):
        answered = message.tool_result
        yield {
            **{name: getattr(message, name, None) for name in MESSAGE},
            "agent": session.agent,
            "session_id": session.session_id,
            "position": position,
            "tool_calls": orjson.dumps(plain(message.tool_calls)).decode() if message.tool_calls else None,
            "tool_call_id": answered.tool_call_id if answered else None,
            "tool_name": answered.tool_name if answered else None,
        }


def add(root: Path, columns: Mapping[str, str], rows: Iterator[Mapping[str, Any]], number: int) -> None:
    import pyarrow as pa  # noqa: PLC0415 - 100 ms and 100 MB that only this needs
    from pyarrow import parquet  # noqa: PLC0415

    kinds = {
        "string": pa.string(),
        "time": pa.timestamp("ms", tz="UTC"),
        "int64": pa.int64(),
        "bool": pa.bool_(),
        "float64": pa.float64(),
        "strings": pa.list_(pa.string()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    found = [
        {name: list(value) if isinstance(value := row.get(name), tuple) else value for name in columns} for row in rows
    ]
    parquet.write_to_dataset(
        pa.Table.from_pylist(found, schema=schema),
        root_path=str(root),
        partition_cols=["agent"],
        basename_template=f"part-{number:06d}-{{i}}.parquet",
    )
