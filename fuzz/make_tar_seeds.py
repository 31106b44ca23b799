"""Writes the seeds of fuzz_tar: small shards by tarfile, one for each form, some that are cut or appended, and those of
tests/remote/hostile_tars.py. And those of fuzz_tenbin: the arrays of fields `.ten`, as WebDataset writes them.

python fuzz/make_tar_seeds.py        # into fuzz/corpus/tar and fuzz/corpus/tenbin; needs numpy
"""

import gzip
import io
import pathlib
import struct
import sys
import tarfile

import numpy as np

CORPUS = pathlib.Path(__file__).parent / "corpus"
sys.path.append(str(CORPUS.parents[1] / "tests" / "remote"))

from hostile_tars import HOSTILE  # noqa: E402

MOST = 4096  # bytes of a hostile one


def npy_of(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def tenbin_of(*arrays, name=b""):
    """What webdataset.tenbin.encode_buffer gives."""

    def chunk(content):
        return b"~TenBin~" + struct.pack("<q", len(content)) + content + bytes(-len(content) % 64)

    out = b""
    for array in arrays:
        kind = array.dtype.str[1:].encode()
        out += chunk(struct.pack(f"<8s8sq{array.ndim}q", kind, name, array.ndim, *array.shape)) + chunk(array.tobytes())
    return out


def tar_of(members, form, pax=None, of_all=None):
    out = io.BytesIO()
    tar = tarfile.TarFile(fileobj=out, mode="w", format=form, pax_headers=of_all)
    for name, content, kind in members:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.pax_headers = kind, len(content), pax or {}
        info.linkname = "a.npy" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
        tar.addfile(info, io.BytesIO(content))
    return out.getvalue() + bytes(1024)


def sparse():
    """A file with holes in GNU's old form, whose map goes on in a block of its own."""
    info = tarfile.TarInfo("b.bin")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 5
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[482] = 1
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(512) + b"holes".ljust(512, b"\0")


def contents():
    file = tarfile.REGTYPE
    array = npy_of(np.arange(3, dtype="f4"))
    one = [("a.npy", array, file), ("a.cls", b"1\n", file), ("a.json", b'{"n": [NaN, 1.5, "x"]}', file)]
    two = [("s/b.NPY", array, file), ("s/b.txt", "hä".encode(), file), ("s/b.jpg", b"\xff\xd8", file)]
    long = [("n/" * 80 + "ä.seg.npy", array, file)]
    yield "ustar", tar_of(one + two, tarfile.USTAR_FORMAT)
    yield "gnu", tar_of(one + long, tarfile.GNU_FORMAT)
    yield "pax", tar_of(one + long, tarfile.PAX_FORMAT, {"mtime": "1.5", "comment": "c"})
    yield (
        "kinds",
        tar_of(
            [
                ("f", b"", tarfile.DIRTYPE),
                *one,
                ("b.npy", b"", tarfile.SYMTYPE),
                ("c.cls", b"", tarfile.LNKTYPE),
                ("d.bin", b"", tarfile.FIFOTYPE),
                ("__info__.json", b"{}", file),
                ("e.pkl", b"N.", file),
            ],
            tarfile.GNU_FORMAT,
        ),
    )
    yield "sparse", tar_of(one, tarfile.GNU_FORMAT)[:-1024] + sparse() + tar_of(two, tarfile.GNU_FORMAT)
    yield "appended", tar_of(one, tarfile.USTAR_FORMAT) + bytes(512) + tar_of(two, tarfile.PAX_FORMAT)
    yield "cut", tar_of(one + two, tarfile.USTAR_FORMAT)[:3700]
    yield "twice", tar_of([*one, ("a.cls", b"2", file), *two, *one], tarfile.USTAR_FORMAT)
    yield "global", tar_of(one, tarfile.PAX_FORMAT, of_all={"comment": "c"})
    ten = tenbin_of(np.arange(6, dtype="i2").reshape(2, 3))
    packed = gzip.compress(tenbin_of(np.zeros((0, 2)), np.arange(3)), mtime=0)
    yield "ten", tar_of([("a.ten", ten, file), ("b.x.tb", ten, file), ("b.ten.gz", packed, file)], tarfile.USTAR_FORMAT)
    yield "gzip", gzip.compress(tar_of(one + two, tarfile.USTAR_FORMAT), mtime=0)
    for name, case in HOSTILE.items():
        if len(case.content) <= MOST:
            yield f"hostile_{name}", case.content


def tenbins():
    yield "one", tenbin_of(np.arange(6, dtype="i2").reshape(2, 3), name=b"boxes")
    yield "several", tenbin_of(np.arange(20, dtype="u1"), np.zeros((0, 4), "f2"), np.arange(3.0).reshape(1, 1, 1, 3, 1))
    yield "number", tenbin_of(np.array(7, dtype="u8"))
    yield "types", tenbin_of(*(np.arange(2, dtype=t) for t in ("f4", "f8", "i1", "i4", "i8", "u2", "u4")))
    yield "long", tenbin_of(np.zeros((1,) * 20, "f4"))


def main():
    for folder, extension, seeds in (("tar", "tar", contents()), ("tenbin", "ten", tenbins())):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        for name, content in seeds:
            (CORPUS / folder / f"{name}.{extension}").write_bytes(content)


if __name__ == "__main__":
    main()
