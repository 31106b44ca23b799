"""Writes the seeds of fuzz_tar: small shards by tarfile, one for each form, and some that are cut or appended.

python fuzz/make_tar_seeds.py        # into fuzz/corpus/tar; needs numpy
"""

import gzip
import io
import pathlib
import tarfile

import numpy as np

CORPUS = pathlib.Path(__file__).parent / "corpus" / "tar"


def npy_of(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


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
    yield "gzip", gzip.compress(tar_of(one + two, tarfile.USTAR_FORMAT), mtime=0)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, content in contents():
        (CORPUS / f"{name}.tar").write_bytes(content)


if __name__ == "__main__":
    main()
