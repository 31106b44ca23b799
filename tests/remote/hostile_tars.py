"""Archives as no honest program writes them, and what is to come of each: HOSTILE, a table of Case by name.

The three answers of a case are texts: keys of samples in order, and `!code` for an error. `indexed` is what a dataset
gives (one `!code` alone: samples cannot be counted), `streamed` what a stream gives up to its first error, `file` what
`load` makes of the whole archive: "ok" or `!code`.

A sample in front of a header that is damaged is not given, because the header may be of its next field.
"""

from __future__ import annotations

import gzip
import io
import struct
from dataclasses import dataclass

import numpy as np

BLOCK = 512
END = bytes(2 * BLOCK)


@dataclass(frozen=True)
class Case:
    content: bytes
    indexed: str
    streamed: str
    file: str


def header(name: bytes, size: int | bytes = 0, kind: bytes = b"0", *, checksum: bytes = b"", **fields: bytes) -> bytes:
    """A POSIX header block. `size` as bytes is what stands in its field; `checksum` replaces the right one."""
    block = bytearray(BLOCK)
    block[0 : len(name[:100])] = name[:100]
    block[100:108] = b"0000644\0"
    told = size if isinstance(size, bytes) else b"%011o\0" % size
    block[124 : 124 + len(told)] = told
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[257:265] = fields.get("magic", b"ustar\00000")
    block[345 : 345 + len(fields.get("prefix", b""))] = fields.get("prefix", b"")
    block[482:483] = fields.get("extended", b"\0")  # of GNU's sparse files
    block[148:156] = b"        "
    block[148:156] = checksum or b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def member(name: bytes | str, content: bytes = b"1", kind: bytes = b"0", **fields: bytes) -> bytes:
    name = name.encode() if isinstance(name, str) else name
    return header(name, len(content), kind, **fields) + padded(content)


def pax(records: bytes, kind: bytes = b"x") -> bytes:
    return member(b"PaxHeaders/x", records, kind)


def record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while length != len(b"%d %s=%s\n" % (length, key, value)):
        length = len(b"%d %s=%s\n" % (length, key, value))
    return b"%d %s=%s\n" % (length, key, value)


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def base256(number: int) -> bytes:
    field = (number % (1 << 96)).to_bytes(12, "big")
    return bytes([field[0] | 0x80]) + field[1:]


A = member("a.cls")
B = member("b.cls")
C = member("c.cls")
ARRAY = npy(np.arange(4.0))


def between(middle: bytes) -> bytes:
    """In an archive, behind a sample and in front of one."""
    return A + middle + C + END


def kinds():
    types = {"symlink": b"2", "hard_link": b"1", "char_device": b"3", "block_device": b"4", "fifo": b"6"}
    for name, kind in types.items():
        yield name, Case(between(header(b"b.cls", 0, kind)), "a !unsupported c", "a !unsupported", "!unsupported")
    told = between(header(b"b.cls", 7, b"1"))
    yield "link_with_a_size", Case(told, "a !unsupported c", "a !unsupported", "!unsupported")
    yield "folder_with_extension", Case(between(header(b"b.cls/", 0, b"5")), "a c", "a c", "ok")
    yield "old_folder", Case(between(header(b"b.cls/", 0, b"0", magic=bytes(8))), "a c", "a c", "ok")
    yield "contiguous_file", Case(between(member("b.cls", b"1", b"7")), "a b c", "a b c", "ok")
    yield (
        "unknown_kind",
        Case(between(member("b.cls", b"1", b"Z")), "a !unsupported c", "a !unsupported", "!unsupported"),
    )
    yield "volume_label", Case(between(header(b"label", 0, b"V")), "a c", "a c", "ok")


def sparse():
    refused = ("a !unsupported c", "a !unsupported", "!unsupported")
    old = header(b"b.bin", 5, b"S", magic=b"ustar  \0")
    yield "sparse", Case(between(old + padded(b"holes")), *refused)
    more = header(b"b.bin", 5, b"S", magic=b"ustar  \0", extended=b"\1") + bytes(BLOCK) + padded(b"holes")
    yield "sparse_with_a_second_map", Case(between(more), *refused)
    endless = header(b"b.bin", 5, b"S", magic=b"ustar  \0", extended=b"\1") + (bytes(504) + b"\1" + bytes(7)) * 8
    yield "sparse_whose_maps_never_end", Case(A + endless, "!truncated", "!truncated", "!truncated")
    told = pax(
        record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.name", b"b.bin") + record(b"GNU.sparse.realsize", b"9")
    )
    yield "sparse_by_pax", Case(between(told + member("GNUSparseFile.0/b.bin", b"0\n")), *refused)


def names():
    for name, text in {
        "parent": "../../etc/passwd",
        "absolute": "/etc/shadow",
        "inner_parent": "a/../../b",
        "current": "./b",
        "windows": "C:\\b",
        "line_break": "b\nc",
        "bell": "b\x07",
        "blank": " ",
    }.items():
        yield f"name_{name}", Case(between(member(f"{text}.cls")), f"a {text} c", f"a {text} c", "ok")
    yield "name_not_utf8", Case(between(member(b"b\xff.cls")), "a b\\xff c", "a b\\xff c", "ok")
    yield "name_of_prefix", Case(between(member("b.cls", prefix=b"../x")), "a ../x/b c", "a ../x/b c", "ok")
    for name, text in {"hidden": ".cls", "dots": "..", "slash": "x/", "meta": "__b__.cls", "none": ""}.items():
        yield f"name_{name}", Case(between(member(text, b"")), "a c", "a c", "ok")
    long = b"n/" * 5000 + b"b.cls"
    told = member("././@LongLink", long + b"\0", b"L", magic=b"ustar  \0")
    key = long.decode()[:-4]
    yield "name_of_10_kb", Case(between(told + member("x")), f"a {key} c", f"a {key} c", "ok")
    unfinished = member("././@LongLink", b"b.cls", b"L", magic=b"ustar  \0")
    yield "long_name_without_its_zero", Case(between(unfinished + member("x")), "a b c", "a b c", "ok")
    empty = member("././@LongLink", b"\0", b"L", magic=b"ustar  \0")
    yield "long_name_of_nothing", Case(between(empty + member("x.cls")), "a c", "a c", "ok")


def sizes():
    corrupt = ("!corrupt",) * 3
    for name, told in {
        "letters": b"zzzzzzzzzzz\0",
        "minus": b"-0000000001\0",
        "nine": b"00000000009\0",
        "negative_base_256": base256(-1),
        "base_256_beyond_63_bits": base256(1 << 63),
        "base_256_beyond_64_bits": base256(1 << 70),
        "base_256_to_the_last_byte": base256((1 << 63) - 1),
        "digits_behind_a_blank": b"1 2\0\0\0\0\0\0\0\0\0",
    }.items():
        yield f"size_{name}", Case(between(header(b"b.cls", told) + padded(b"1")), *corrupt)
    for name, told in {
        "base_256": base256(1),
        "blanks": b"          1 ",
        "no_end": b"000000000001",
        "short": b"1\0\0\0\0\0\0\0\0\0\0\0",
    }.items():
        yield f"size_{name}", Case(between(header(b"b.cls", told) + padded(b"1")), "a b c", "a b c", "ok")
    nothing = header(b"b.txt", bytes(12))
    yield "size_empty", Case(between(nothing), "a b c", "a b c", "ok")
    lie = header(b"b.txt", 8 << 30 - 1) + padded(b"1")
    yield "size_beyond_the_end", Case(between(lie), "a !truncated", "a !truncated", "!truncated")
    far = header(b"b.txt", base256(1 << 60)) + padded(b"1")
    yield "size_of_an_exabyte", Case(between(far), "a !truncated", "a !truncated", "!truncated")
    smaller = header(b"b.txt", 1) + padded(b"1") + padded(b"more")
    yield "size_smaller_than_the_content", Case(between(smaller), "!corrupt", "a !corrupt", "!corrupt")
    over = header(b"b.txt", 1 + BLOCK) + padded(b"1")
    yield "size_that_takes_in_the_next", Case(A + over + C + B + END, "!corrupt", "a !corrupt", "!corrupt")


def records():
    corrupt = ("!corrupt",) * 3
    for name, text in {
        "longer_than_all": b"99 path=b.cls\n",
        "too_short": b"8 path=b.cls\n",
        "zero": b"0 path=b.cls\n",
        "negative": b"-14 path=b.cls\n",
        "letters": b"xx path=b.cls\n",
        "of_64_bits": b"18446744073709551616 path=b.cls\n",
        "of_63_bits": b"9223372036854775807 path=b.cls\n",
        "blank_alone": b"2 ",
        "no_blank": b"13path=b.cls\n",
        "no_equals": b"12 pathbcls\n",
        "no_line_break": b"13 path=b.cls",
        "size_of_letters": record(b"size", b"x"),
        "size_negative": record(b"size", b"-1"),
        "size_of_20_digits": record(b"size", b"9" * 20),
        "size_of_64_bits": record(b"size", b"%d" % ((1 << 64) - 1)),
        "size_empty": record(b"size", b""),
    }.items():
        yield f"pax_{name}", Case(between(pax(text) + member("b.cls")), *corrupt)
    for name, text in {
        "path": record(b"path", b"b.cls"),
        "path_twice": record(b"path", b"x.cls") + record(b"path", b"b.cls"),
        "zeros_behind": record(b"path", b"b.cls") + bytes(9),
        "other_keys": record(b"LIBARCHIVE.x", b"\xff\0") + record(b"path", b"b.cls"),
        "equals_in_value": record(b"comment", b"size=9") + record(b"path", b"b.cls"),
    }.items():
        yield f"pax_{name}", Case(between(pax(text) + member("x.cls")), "a b c", "a b c", "ok")
    yield "pax_empty", Case(between(pax(b"") + member("b.cls")), "a b c", "a b c", "ok")
    yield "pax_path_of_nothing", Case(between(pax(record(b"path", b"")) + member("b.cls")), "a c", "a c", "ok")
    yield "pax_path_with_zero", Case(between(pax(record(b"path", b"b.cls\0x")) + member("x")), "a b c", "a b c", "ok")
    bigger = pax(record(b"size", b"1")) + header(b"b.cls", 8 << 30) + padded(b"1")
    yield "pax_size_overrides", Case(between(bigger), "a b c", "a b c", "ok")
    lie = pax(record(b"size", b"%d" % (1 << 50))) + member("b.cls")
    yield "pax_size_beyond_the_end", Case(between(lie), "a !truncated", "a !truncated", "!truncated")
    top = pax(record(b"size", b"%d" % ((1 << 63) - 1))) + member("b.cls")
    yield "pax_size_of_63_bits", Case(between(top), *corrupt)
    refused = ("!unsupported",) * 3
    yield "pax_path_of_all", Case(between(pax(record(b"path", b"x.cls"), b"g") + member("b.cls")), *refused)
    yield "pax_size_of_all", Case(between(pax(record(b"size", b"9"), b"g") + member("b.cls")), *refused)
    yield (
        "pax_comment_of_all",
        Case(between(pax(record(b"comment", b"9"), b"g") + member("b.cls")), "a b c", "a b c", "ok"),
    )
    limit = ("!limit",) * 3
    yield "pax_told_to_have_2_mb", Case(between(header(b"x", 2 << 20, b"x") + member("b.cls")), *limit)
    yield "65_pax_headers", Case(between(pax(b"") * 65 + member("b.cls")), *limit)
    yield "pax_without_a_member", Case(A + pax(record(b"path", b"b.cls")) + END, *corrupt)
    yield (
        "pax_beyond_the_end",
        Case(A + header(b"x", 5000, b"x") + padded(b"1"), "!truncated", "!truncated", "!truncated"),
    )


def ends():
    whole = A + member("b.txt", b"x" * 700) + END
    content = len(A) + BLOCK
    yield "cut_in_a_header", Case(whole[: len(A) + 200], "!truncated", "!truncated", "!truncated")
    yield "cut_behind_a_header", Case(whole[:content], "a !truncated", "a !truncated", "!truncated")
    yield "cut_in_content", Case(whole[: content + 300], "a !truncated", "a !truncated", "!truncated")
    yield "cut_in_padding", Case(whole[: content + 710], "a !truncated", "a !truncated", "!truncated")
    yield "cut_between_members", Case(whole[: content + 1024], "a b", "a b", "!truncated")
    yield "cut_in_its_end", Case(whole[: content + 1024 + BLOCK], "a b", "a b", "ok")
    yield "cut_in_the_first_header", Case(whole[:300], "!truncated", "!truncated", "!unknown_format")
    yield "appended", Case(A + END + B + END, "a b", "a b", "ok")
    yield "appended_with_many_zeros", Case(A + bytes(20 * BLOCK) + B + END, "a b", "a b", "ok")
    yield "appended_off_the_blocks", Case(A + END + bytes(100) + B + END, "!corrupt", "!corrupt", "!corrupt")
    yield "appended_within_a_key", Case(A + END + member("a.txt") + END, "a", "a", "ok")
    yield "rubbish_behind_its_end", Case(A + END + b"rubbish" * 100, "!corrupt", "!corrupt", "!corrupt")
    yield "rubbish_of_a_line", Case(A + END + b"rubbish", "!truncated", "!truncated", "!truncated")
    yield "zeros_alone", Case(END, "", "", "!unknown_format")
    yield "no_byte", Case(b"", "!truncated", "!truncated", "!unknown_format")
    yield "rubbish", Case(b"rubbish" * 200, "!corrupt", "!corrupt", "!unknown_format")
    yield (
        "wrong_checksum",
        Case(between(header(b"b.cls", 1, checksum=b"000001\0 ") + padded(b"1")), "!corrupt", "!corrupt", "!corrupt"),
    )
    yield (
        "checksum_of_letters",
        Case(between(header(b"b.cls", 1, checksum=b"letters!") + padded(b"1")), "!corrupt", "!corrupt", "!corrupt"),
    )
    zip_ = b"PK\3\4" + bytes(1020)
    yield "a_zip", Case(zip_, "!corrupt", "!corrupt", "!truncated")
    packed = gzip.compress(A + B + END, mtime=0)
    yield "gzip", Case(packed, "!unsupported", "a b", "!unknown_format")
    yield "gzip_cut", Case(packed[:-30], "!unsupported", "!truncated", "!unknown_format")
    yield "gzip_damaged", Case(packed[:40] + b"\xff" * 9 + packed[49:], "!unsupported", "!corrupt", "!unknown_format")


def keys():
    yield "key_again", Case(A + B + A + END, "a b a", "a b a", "ok")
    twice = ("a !corrupt c", "a !corrupt", "!corrupt")
    yield "field_twice", Case(between(B + B), *twice)
    yield "field_twice_by_case", Case(between(B + member("b.CLS")), *twice)
    yield "field_twice_behind_a_folder", Case(between(B + header(b"x/", 0, b"5") + B), *twice)
    yield (
        "key_goes_on_behind_a_folder",
        Case(between(B + header(b"x/", 0, b"5") + member("b.txt")), "a b c", "a b c", "ok"),
    )
    none = ("!unsupported",) * 3
    yield "no_extension", Case(member("a") + member("b") + END, *none)
    yield "folders_alone", Case(header(b"x/", 0, b"5") + header(b"x/y/", 0, b"5") + END, *none)
    yield "links_alone", Case(header(b"x", 0, b"2") + END, *none)
    yield "meta_alone", Case(member("__info__.json", b"{}") + END, *none)


def contents():
    def field(name: str, content: bytes, code: str, file: str = ""):
        lone = f"a !{code} c", f"a !{code}", file or f"!{code}"
        return Case(between(member(f"b.{name}", content)), *lone)

    yield "number_beyond_64_bits", field("cls", b"9223372036854775808", "corrupt")
    yield "number_of_nothing", field("cls", b"", "corrupt")
    yield "number_of_words", field("index", b"cat", "corrupt")
    yield "text_not_utf8", field("txt", b"\xff\xfe", "corrupt")
    yield "json_of_nothing", field("json", b"", "corrupt")
    yield "json_unfinished", field("json", b'{"a": [1', "corrupt")
    yield "json_deep", field("json", b"[" * 100_000, "limit")
    yield "json_key_twice", field("json", b'{"a": 1, "a": 2}', "corrupt")
    yield "pickle", field("pkl", b"N.", "unsafe", "ok")
    yield "array_of_nothing", field("npy", b"", "unknown_format")
    yield "array_of_rubbish", field("npy", b"no array" * 9, "unknown_format")
    yield "array_shorter_than_it_says", field("npy", ARRAY[:-8], "truncated")
    huge = ARRAY.replace(b"(4,), }", b"(4,), }").replace(b"'shape': (4,)", b"'shape': (4611686018427387904,)")
    yield "array_of_exabytes", field("npy", huge, "corrupt")
    yield "archive_in_an_archive", field("npy", A + END, "unsupported")
    told = struct.pack("<Q", 1 << 40) + b"{}"
    yield "safetensors_header_beyond_the_end", field("safetensors", told, "unknown_format")
    yield "gzip_of_rubbish", field("cls.gz", b"1", "corrupt", "ok")
    yield "gzip_field_cut", field("npy.gz", gzip.compress(ARRAY, mtime=0)[:-20], "truncated", "ok")
    yield "ten_of_rubbish", field("ten", b"~TenBin~" + b"\xff" * 64, "corrupt")


def table() -> dict[str, Case]:
    parts = (kinds, sparse, names, sizes, records, ends, keys, contents)
    return dict(case for part in parts for case in part())


HOSTILE = table()
