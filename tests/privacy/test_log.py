"""Records are whole or not there; what was acknowledged is never dropped without a word."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.errors import InputError
from raydp_sim.privacy.ledger.log import FORMAT, MARK, Log, packed, records

CONTENTS = [b"first", b"\0" * 40, MARK + b"third\n"]


def contents(path):
    with open(path, "rb") as file:
        return [record.content for record in records(file, path)]


@pytest.fixture
def path(tmp_path):
    log = Log(tmp_path / "some.log")
    for content in CONTENTS:
        log.append(content)
    return log.path


def ends(path):
    with open(path, "rb") as file:
        return [len(FORMAT), *(record.end for record in records(file, path))]


@given(st.lists(st.binary(max_size=300) | st.just(MARK), max_size=8))
def test_records_come_back_as_they_were_appended(tmp_path_factory, written):
    log = Log(tmp_path_factory.mktemp("log") / "some.log")
    for content in written:
        log.append(content)
    log.open()
    assert contents(log.path) == written
    assert log.path.read_bytes() == FORMAT + b"".join(map(packed, written))


def test_wherever_the_last_record_was_cut_short_it_goes_and_writing_goes_on(path):
    whole, (*_, before, end) = path.read_bytes(), ends(path)
    for length in range(before, end + 1):
        path.write_bytes(whole[:length])
        kept = CONTENTS if length == end else CONTENTS[:-1]
        assert contents(path) == kept
        Log(path).append(b"next")
        assert contents(path) == [*kept, b"next"]
        assert path.read_bytes()[:before] == whole[:before]


def test_a_last_record_whose_bytes_never_reached_the_disk_is_cut_short_too(path):
    """A file may have its length and zeros in it after a power cut."""
    whole, (*_, before, end) = path.read_bytes(), ends(path)
    for length in range(before, end):
        path.write_bytes(whole[:length] + b"\0" * (end - length))
        assert contents(path) == CONTENTS[:-1]


def test_a_changed_byte_before_the_last_record_is_an_error_that_names_the_file(path):
    whole, (*_, before, _) = bytearray(path.read_bytes()), ends(path)
    for place in range(before):
        for flipped in (whole[place] ^ 1, whole[place] ^ 0x80):
            path.write_bytes(whole[:place] + bytes([flipped]) + whole[place + 1 :])
            with pytest.raises(InputError, match=r"some\.log: the file is damaged"):
                contents(path)
            damaged = path.read_bytes()
            with pytest.raises(InputError, match=r"some\.log"):
                Log(path).append(b"next")
            assert path.read_bytes() == damaged  # nothing is cut off


def test_a_piece_that_is_missing_in_the_middle_is_an_error(path):
    whole, (_, first, second, _) = path.read_bytes(), ends(path)
    for start in range(first, second):
        path.write_bytes(whole[:start] + whole[start + 1 :])
        with pytest.raises(InputError, match=f"the record at byte {first} does not match"):
            contents(path)


def test_what_is_appended_meanwhile_is_not_looked_at(path):
    with open(path, "rb") as file:
        found = records(file, path)
        first = next(found).content
        Log(path).append(b"meanwhile")
        file.seek(3)  # the caller may read elsewhere
        assert [first, *(record.content for record in found)] == CONTENTS
    assert contents(path) == [*CONTENTS, b"meanwhile"]


def test_a_record_that_could_not_be_written_is_cut_off_before_the_next(path, monkeypatch):
    log, write = Log(path), os.write

    def full(descriptor, data):
        if len(data) < 15:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:15])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            log.append(b"does not fit" * 2)
    assert contents(path) == CONTENTS and len(path.read_bytes()) == ends(path)[-1] + 30
    log.append(b"next")
    assert contents(path) == [*CONTENTS, b"next"]


def test_a_record_is_written_whole_however_little_is_taken_at_a_time(path, monkeypatch):
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
        Log(path).append(b"piece by piece")
    assert contents(path)[-1] == b"piece by piece"


def test_descriptors_are_given_back(path):
    def number():
        descriptor = os.open(path, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    free = number()
    log = Log(path)
    log.append(b"one")
    assert number() != free
    log.close()
    assert number() == free
    log.append(b"two")
    del log
    assert number() == free
