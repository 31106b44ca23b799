"""Files of tokens and arrays without a header that lie about themselves: by path and by URL, as documents, as a file,
in penstock.torch and by the command, the same lengths and the same errors."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from servers import ROOT

import penstock

PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
TOKENS = np.arange(100, 112, dtype="<u2").tobytes()  # 12
HUGE = (1 << 64) - 1


def idx(
    lengths: object = (5, 0, 7),
    offsets: object = (0, 10, 10),
    bounds: object = (0, 1, 3),
    *,
    magic: bytes = b"MMIDIDX\0\0",
    version: int = 1,
    code: int = 8,
    sequences: int | None = None,
    documents: int | None = None,
    behind: bytes = b"",
) -> bytes:
    counts = len(lengths) if sequences is None else sequences, len(bounds) if documents is None else documents
    arrays = np.array(lengths, "<i4").tobytes() + np.array(offsets, "<i8").tobytes() + np.array(bounds, "<i8").tobytes()
    return magic + struct.pack("<QBQQ", version, code, *counts) + arrays + behind


# Name: the index, the tokens, what documents gives, what load gives. Numbers are lengths of documents.
MEGATRON = {
    "sound": (idx(), TOKENS, "5 7", "ok"),
    "modes": (idx(behind=b"\0\0\0"), TOKENS, "5 7", "ok"),
    "no_document": (idx((), (), ()), b"", "", "ok"),
    "one_bound": (idx((), (), (0,)), b"", "", "ok"),
    "empty_documents": (idx(bounds=(0, 0, 1, 3, 3)), TOKENS, "0 5 7 0", "ok"),
    "swapped": (idx((5, 7), (14, 0), (0, 1, 2)), TOKENS, "5 7", "ok"),
    "overlapping": (idx((5, 7), (0, 0), (0, 1, 2)), TOKENS, "5 7", "ok"),
    "apart_in_a_document": (idx((5, 6), (0, 12), (0, 2)), TOKENS, "!corrupt", "ok"),
    "length_negative": (idx((-1, 0, 7)), TOKENS, "!corrupt", "ok"),
    "length_beyond_the_end": (idx((5, 0, 8)), TOKENS, "!truncated", "ok"),
    "length_of_31_bits": (idx((5, 0, 2**31 - 1)), TOKENS, "!truncated", "ok"),
    "offset_negative": (idx(offsets=(0, 10, -10)), TOKENS, "!corrupt", "ok"),
    "offset_in_a_token": (idx(offsets=(1, 10, 10)), TOKENS, "!corrupt", "ok"),
    "offset_beyond_the_end": (idx(offsets=(0, 10, 26)), TOKENS, "!truncated", "ok"),
    "offset_of_63_bits": (idx(offsets=(0, 10, (1 << 63) - 2)), TOKENS, "!truncated", "ok"),
    "bounds_begin_late": (idx(bounds=(1, 3)), TOKENS, "!corrupt", "ok"),
    "bounds_fall": (idx(bounds=(0, 2, 1, 3)), TOKENS, "!corrupt", "ok"),
    "bounds_negative": (idx(bounds=(0, -1, 3)), TOKENS, "!corrupt", "ok"),
    "bounds_end_early": (idx(bounds=(0, 1, 2)), TOKENS, "!corrupt", "ok"),
    "bounds_beyond_the_sequences": (idx(bounds=(0, 1, 4)), TOKENS, "!corrupt", "ok"),
    "no_bounds": (idx(bounds=()), TOKENS, "!corrupt", "ok"),
    "version_2": (idx(version=2), TOKENS, "!unsupported", "!unsupported"),
    "version_of_64_bits": (idx(version=HUGE), TOKENS, "!unsupported", "!unsupported"),
    "code_0": (idx(code=0), TOKENS, "!unsupported", "!unsupported"),
    "code_9": (idx(code=9), TOKENS, "!unsupported", "!unsupported"),
    "more_sequences": (idx(sequences=4), TOKENS, "!truncated", "!truncated"),
    "fewer_sequences": (idx(sequences=2), TOKENS, "!corrupt", "!corrupt"),
    "sequences_of_64_bits": (idx(sequences=HUGE), TOKENS, "!truncated", "!truncated"),
    "sequences_that_wrap_around": (idx(sequences=1 << 62), TOKENS, "!truncated", "!truncated"),
    "more_documents": (idx(documents=4), TOKENS, "!truncated", "!truncated"),
    "documents_of_64_bits": (idx(documents=HUGE), TOKENS, "!truncated", "!truncated"),
    "fewer_documents": (idx(documents=2), TOKENS, "!corrupt", "!corrupt"),
    "bytes_behind": (idx(behind=b"\0"), TOKENS, "!corrupt", "!corrupt"),
    "cut_in_its_header": (idx()[:20], TOKENS, "!truncated", "!truncated"),
    "cut_in_its_magic": (idx()[:6], TOKENS, "!unknown_format", "!unknown_format"),
    "other_magic": (idx(magic=b"MMIDIDX\0\1"), TOKENS, "!unknown_format", "!unknown_format"),
    "half_a_token": (idx(), TOKENS[:-1], "!corrupt", "!corrupt"),
    "tokens_cut": (idx(), TOKENS[:-2], "!truncated", "ok"),
    "tokens_of_nothing": (idx(), b"", "!truncated", "ok"),
    "no_tokens": (idx(), None, "!not_found", "!not_found"),
}


def llmc(*header: int, tokens: bytes = TOKENS, size: int = 1024) -> bytes:
    return struct.pack(f"<{len(header)}i", *header).ljust(1024, b"\0")[:size] + tokens


LLMC = {
    "sound": (llmc(20240520, 1, 12), "12", "ok"),
    "no_token": (llmc(20240520, 1, 0, tokens=b""), "", "ok"),
    "wide": (llmc(20240801, 7, 6), "6", "ok"),
    "version_of_the_other": (llmc(20240520, 7, 12), "!unsupported", "!unsupported"),
    "version_negative": (llmc(20240520, -1, 12), "!unsupported", "!unsupported"),
    "count_negative": (llmc(20240520, 1, -1), "!corrupt", "!corrupt"),
    "count_of_31_bits": (llmc(20240520, 1, (1 << 31) - 1), "!truncated", "!truncated"),
    "one_more": (llmc(20240520, 1, 13), "!truncated", "!truncated"),
    "one_fewer": (llmc(20240520, 1, 11), "!corrupt", "!corrupt"),
    "half_a_token_behind": (llmc(20240520, 1, 12, tokens=TOKENS + b"\0"), "!corrupt", "!corrupt"),
    "wide_with_narrow_tokens": (llmc(20240801, 7, 12), "!truncated", "!truncated"),
    "header_cut": (llmc(20240520, 1, 12, tokens=b"", size=1000), "!truncated", "!truncated"),
    "magic_alone": (llmc(20240520, tokens=b"", size=4), "!truncated", "!truncated"),
    "magic_of_a_model": (llmc(20240326, 3, 12), "!unknown_format", "!unknown_format"),
    "big_endian": (
        struct.pack(">3i", 20240520, 1, 12).ljust(1024, b"\0") + TOKENS,
        "!unknown_format",
        "!unknown_format",
    ),
}
CASES = {f"megatron_{name}": ("idx", *case) for name, case in MEGATRON.items()}
CASES |= {f"llmc_{name}": ("bin", content, None, *seen) for name, (content, *seen) in LLMC.items()}


@pytest.fixture
def places(proxy, settings, tmp_path):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5)

    def put(name: str, content: bytes) -> tuple[str, str]:
        (tmp_path / name).write_bytes(content)
        proxy.origin.objects[f"/{name}"] = content
        return str(tmp_path / name), f"{proxy.url}/{name}"

    return put


@pytest.fixture
def lies(places):
    def put(name: str) -> tuple[str, str]:
        extension, content, tokens, _, _ = CASES[name]
        if tokens is not None:
            places(f"{name}.bin", tokens)
        return places(f"{name}.{extension}", content)

    return put


def seen_in(where: str, text: str) -> str:
    """Without the place; and without what is quoted of files here alone, as a server may have answered anything."""
    text = re.sub(r"'[^']*\.bin'", "'HERE.bin'", text.replace(where.rpartition(".")[0], "HERE"))
    return re.sub(r" \([0-9a-f ]{20,}\)| that begins '.*?'", "", text)


def seen(where: str, work) -> tuple[str, str]:
    """What came, in a word or two, and what an error says, without the place."""
    try:
        return work(where), ""
    except penstock.Error as error:
        return f"!{error.code}", seen_in(where, str(error))


def lengths(where: str) -> str:
    return " ".join(map(str, penstock.lengths(penstock.documents(where))))


def verified(where: str) -> str:
    lengths(where)
    return "ok"


def loaded(where: str) -> str:
    penstock.load(where)
    return "ok"


@pytest.mark.parametrize("name", CASES)
def test_documents_and_errors_by_path_and_url(lies, name):
    pt = pytest.importorskip("penstock.torch")
    path, url = lies(name)
    *_, documents, file = CASES[name]
    found = [seen(where, lengths) for where in (path, url)]
    assert found[0] == found[1]
    assert found[0][0] == documents
    found = [seen(where, loaded) for where in (path, url)]
    assert found[0] == found[1]
    assert found[0][0] == file

    def of_torch(where: str) -> str:
        return " ".join(str(len(document)) for document in pt.Documents(where))

    assert [seen(where, of_torch)[0] for where in (path, url)] == [documents] * 2


@pytest.mark.parametrize("name", CASES)
def test_the_command_says_what_load_says(lies, name):
    for where in (places := lies(name)):
        # Who verifies an index wants to know of its documents too.
        words = {"ls": seen(where, loaded), "info": seen(where, loaded), "verify": seen(where, verified)}
        for command, (word, error) in words.items():
            done = subprocess.run([PROGRAM, command, where], capture_output=True, timeout=120, check=False)
            assert (done.returncode == 0) == (word == "ok"), (command, done)
            told = seen_in(where, (done.stdout + done.stderr).decode())
            assert error in told, (command, places)


# What is asked of 24 bytes, and the code of the error.
ODD_LAYOUTS = {
    "odd_rest": ({"dtype": "u4", "offset": 1}, "shape_mismatch"),
    "one_more": ({"dtype": "u2", "shape": 13}, "truncated"),
    "two_unknown": ({"dtype": "u2", "shape": (-1, -1)}, "invalid_argument"),
    "minus_two": ({"dtype": "u2", "shape": (-2,)}, "invalid_argument"),
    "beyond_63_bits": ({"dtype": "u2", "shape": (1 << 62, 4)}, "invalid_argument"),
    "nothing_times_unknown": ({"dtype": "u2", "shape": (0, -1)}, "invalid_argument"),
    "behind_the_end": ({"dtype": "u2", "shape": -1, "offset": 25}, "truncated"),
    "far_behind_the_end": ({"dtype": "u2", "shape": -1, "offset": (1 << 63) - 1}, "truncated"),
    "no_bytes_a_element": ({"dtype": "S0", "shape": -1}, "invalid_argument"),
    "rest_of_a_row": ({"dtype": "u2", "shape": (-1, 5)}, "shape_mismatch"),
}


def words_of(said: dict[str, object]) -> list[str]:
    shape = said.get("shape", -1)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    words = ["--dtype", str(said["dtype"]), f"--shape={','.join(map(str, sizes))}"]
    return [*words, "--offset", str(said.get("offset", 0))]


@pytest.mark.parametrize("name", ODD_LAYOUTS)
def test_arrays_that_do_not_fit(places, name):
    pt = pytest.importorskip("penstock.torch")
    said, code = ODD_LAYOUTS[name]
    ways = {
        "raw": lambda where: str(penstock.raw(where, **said).load().shape),
        "rows": lambda where: str(len(penstock.rows(where, **said))),
        "load": lambda where: str(penstock.load(where, **({"shape": -1} | said)).shape),
        "torch": lambda where: str(len(pt.Rows(where, **said))),
    }
    path, url = places("x.bin", TOKENS)
    for way, work in ways.items():
        found = [seen(where, work) for where in (path, url)]
        assert found[0] == found[1], way
        assert found[0][0] == f"!{code}", way
    for where in (path, url):
        done = subprocess.run([PROGRAM, "ls", where, *words_of(said)], capture_output=True, timeout=120, check=False)
        assert done.returncode != 0, done
        if name not in ("minus_two", "no_bytes_a_element"):  # refused as words of the command
            assert seen(where, ways["load"])[1] in seen_in(where, done.stderr.decode()), done
