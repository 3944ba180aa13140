"""Damaged files: whatever became of one, nothing crashes or hangs, the others are there, and so is what stood before."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from amux.readers._base import Host

from . import law, mutate
from .law import SOAK, Telling, broken_law, told
from .mutate import Damage

ROUNDS = 5 if SOAK else 1
SAMPLE = 10_000 if SOAK else 10
"""How many damages of one file are tried."""


def files(home: Path) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]


def is_part_of_a_database(path: Path) -> bool:
    return path.name.endswith(("-wal", "-shm", "-journal")) or law.is_database(path.read_bytes()[:16])


def seeded(case, path: Path) -> Random:
    return Random(f"{case.agent} {path.relative_to(case.home)}")


def sample(damages: Iterator[Damage | None], dice: Random) -> list[Damage]:
    found = [damage for damage in damages if damage]
    return dice.sample(found, min(SAMPLE, len(found)))


@pytest.fixture
def clean(case) -> Telling:
    if not law.has_reader(case.agent):
        pytest.skip(f"no reader for {case.agent}")
    telling = told(case.agent, Host(case.home, case.env))
    assert telling.wrong == []
    return telling


class Patient:
    """A file that is damaged again and again, and healed."""

    def __init__(self, case, path: Path) -> None:
        self.agent = case.agent
        self.host = Host(case.home, case.env)
        self.path = path
        self.content = path.read_bytes()
        self.prefixes: dict[int, Telling] = {}

    def __enter__(self) -> "Patient":
        return self

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.content)

    def told_with(self, content: bytes, *, shown: bool = True) -> Telling:
        self.path.write_bytes(content)
        return told(self.agent, self.host, shown=shown)

    def prefix(self, end: int) -> Telling:
        if end not in self.prefixes:
            self.prefixes[end] = self.told_with(self.content[:end], shown=False)
        return self.prefixes[end]


def failures(clean: Telling, patient: Patient, damages: list[Damage], stood: Callable[[Damage], dict]) -> list[str]:
    found = []
    for damage in damages:
        wanted = stood(damage)
        after = patient.told_with(damage.content)
        found += [f"{patient.path.name}: {damage.about}: {what}" for what in broken_law(clean, after, str(patient.path), wanted)]
    return found


def texts_damaged(content: bytes, dice: Random, *, json: bool) -> Iterator[Damage | None]:
    for _ in range(ROUNDS):
        yield from (mutation(content, dice) for mutation in mutate.TEXT)
        yield from (mutate.value_changed(content, dice) for _ in range(6))
        if json:
            yield from mutate.cuts(content, dice)


def test_what_stood_before_the_damage_of_a_text_is_told(case, clean):
    wrong: list[str] = []
    for path in files(case.home):
        if is_part_of_a_database(path):
            continue
        with Patient(case, path) as patient:
            content, name = patient.content, str(path)

            def stood(damage: Damage, patient=patient, content=content, name=name) -> dict:
                if name.endswith(".jsonl"):
                    prefix = patient.prefix(law.line_of(content, damage.start))
                    return law.before_in_lines(clean, prefix, name, content, damage.start)
                return law.before_in_a_value(clean, name, content, damage.start) if name.endswith(".json") else {}

            dice = seeded(case, path)
            damages = sample(texts_damaged(content, dice, json=path.suffix in (".json", ".jsonl")), dice)
            wrong += failures(clean, patient, damages, stood)

    assert not wrong, "\n".join(wrong)


def databases_damaged(content: bytes, dice: Random) -> Iterator[Damage | None]:
    for _ in range(ROUNDS):
        yield from (mutation(content, dice) for mutation in mutate.DATABASE)


def test_what_is_whole_in_a_damaged_database_is_told(case, clean, tmp_path):
    wrong: list[str] = []
    for path in filter(is_part_of_a_database, files(case.home)):
        wal = path.with_name(path.name + "-wal")
        with Patient(case, path) as patient:

            def stood(damage: Damage, path=path, wal=wal, patient=patient) -> dict:
                if path.name.endswith("-wal"):
                    return law.before_in_lines(clean, patient.prefix(damage.start), str(path), patient.content, 0)
                if not law.is_database(patient.content) or wal.exists():
                    return {}
                (tmp_path / "whole").write_bytes(patient.content)
                (tmp_path / "damaged").write_bytes(damage.content)
                return law.untouched(clean, str(path), law.lost_rows(tmp_path / "whole", tmp_path / "damaged"))

            dice = seeded(case, path)
            damages = sample(databases_damaged(patient.content, dice), dice)
            wrong += failures(clean, patient, damages, stood)

    assert not wrong, "\n".join(wrong)
