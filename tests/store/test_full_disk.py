"""A disk that fills up while judges are asked, on a real file system of a few kilobytes."""

import errno
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from answering import annotate, statuses
from buyer_process import numbered, store_in, tiny_judge
from fault_server import FaultServer, serving

from judgeline.judges import buying
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.store.journal import Journal
from judgeline.judges.store.writing import ROOM_BYTES, Room, VerdictWriter

N_CALLS = 1200


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A small file system, and what makes it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(kib: int, *options: str) -> None:
        size = ",".join([f"size={kib}k", *options])
        command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no command mount")
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    yield SimpleNamespace(place=place, mount=mount, enlarge=lambda: mount(64 << 10, "remount"))
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buying, "VerdictWriter", partial(VerdictWriter, rows=60, seconds=0.2))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serving(FaultServer()) as one:
        yield one


def buy(server: FaultServer, place: Path, folder: Path) -> int:
    """Buy all calls through a store on a disk; return how many answers are stored then."""
    store, judge = store_in(place), tiny_judge(server.url, folder)
    verdicts = annotate(judge, numbered(N_CALLS // 2), slug="j", buyer=Buyer(store, Budget()))
    assert verdicts["status"].eq("ok").all()
    return len(verdicts)


def n_stored(place: Path) -> int:
    store = store_in(place)
    return sum(len(statuses(store, key)) for key in store.judge_keys())


@pytest.mark.slow
def test_a_disk_that_fills_up_keeps_every_answer_and_the_rest_waits(disk, server, tmp_path):
    disk.mount((ROOM_BYTES >> 10) + 100)
    with pytest.raises(OSError, match="No space left for verdicts: every answer") as told:
        buy(server, disk.place, tmp_path)
    assert told.value.errno == errno.ENOSPC
    assert str(disk.place) in str(told.value)
    assert "JUDGELINE_VERDICTS" in str(told.value)
    assert 0 < n_stored(disk.place) == len(server.presentations) < N_CALLS
    assert not list(disk.place.rglob(".room"))
    disk.enlarge()
    assert buy(server, disk.place, tmp_path) == N_CALLS
    assert set(server.asked.values()) == {1}


def test_a_disk_without_space_costs_nothing(disk, server, tmp_path):
    disk.mount(1 << 10)
    with pytest.raises(OSError, match="takes 16 MiB to begin, and nothing was asked") as told:
        buy(server, disk.place, tmp_path)
    assert str(disk.place) in str(told.value)
    assert server.presentations == []
    assert not list(disk.place.rglob(".room"))


@pytest.mark.slow
def test_without_space_shards_are_smaller_and_losses_counted(disk, server, tmp_path, monkeypatch):
    monkeypatch.setattr(Room, "hold", lambda self: None)  # as where a disk cannot promise space
    monkeypatch.setattr(Journal, "add", lambda *_: None)  # nor a journal give up its own
    disk.mount(100)
    with pytest.raises(OSError, match="answers could not be stored") as told:
        buy(server, disk.place, tmp_path)
    (lost,) = re.findall(r"([\d,]+) answers could not be stored", str(told.value))
    assert n_stored(disk.place) + int(lost.replace(",", "")) == len(server.presentations) < N_CALLS
    stored = n_stored(disk.place)
    disk.enlarge()
    assert buy(server, disk.place, tmp_path) == N_CALLS
    assert sum(n == 1 for n in server.asked.values()) >= stored
    assert len(server.presentations) == N_CALLS + int(lost.replace(",", ""))


def test_a_file_in_the_place_of_the_folder_is_named(server: FaultServer, tmp_path: Path) -> None:
    file = tmp_path / "verdicts"
    file.write_text("no folder", encoding="utf-8")
    with pytest.raises(FileExistsError, match="JUDGELINE_VERDICTS") as told:
        buy(server, tmp_path, tmp_path / "other")
    assert f"{file} is a file" in str(told.value)
    assert server.presentations == []
