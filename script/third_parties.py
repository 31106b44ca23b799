#!/usr/bin/env python3
"""What of others is in Penstock's artefacts or is opened by them, with its licence: the one table of it.

    script/third_parties.py --spdx VERSION SECONDS    an SPDX 2.3 document (JSON) of that release, made at that time
    script/third_parties.py --notices                 the text of THIRD_PARTY_LICENSES, from this machine's packages

`tests/script/third_parties_test.py` compares the table with what sources include, CMake links, programs load and need.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Part:
    name: str
    licence: str  # an SPDX expression
    holder: str
    home: str
    how: str  # compiled in, static, dynamic, opened (at run time, where it is there), site (in the site's archive)
    package: str = ""  # what gives its version: a Debian package, or a distribution of Python as "pip:NAME"
    headers: str = ""  # the beginning of what sources include
    targets: tuple[str, ...] = ()  # of CMake
    libraries: tuple[str, ...] = ()  # shared ones, without what follows ".so"


PARTS = (
    Part(
        "fmt",
        "MIT",
        "2012-present, Victor Zverovich and fmt contributors",
        "https://github.com/fmtlib/fmt",
        "compiled in",
        "libfmt-dev",
        "fmt/",
        ("fmt", "fmt::fmt-header-only"),
    ),
    Part(
        "nlohmann-json",
        "MIT",
        "2013-2022 Niels Lohmann",
        "https://github.com/nlohmann/json",
        "compiled in",
        "nlohmann-json3-dev",
        "nlohmann/",
        ("nlohmann_json", "nlohmann_json::nlohmann_json"),
    ),
    Part(
        "CLI11",
        "BSD-3-Clause",
        "2017-2021 University of Cincinnati, developed by Henry Schreiner",
        "https://github.com/CLIUtils/CLI11",
        "compiled in",
        "libcli11-dev",
        "CLI/",
        ("CLI11", "CLI11::CLI11"),
    ),
    Part(
        "Eigen",
        "MPL-2.0",
        "the Eigen authors",
        "https://gitlab.com/libeigen/eigen",
        "compiled in",
        "libeigen3-dev",
        "Eigen/",
        ("Eigen3", "Eigen3::Eigen"),
    ),
    Part(
        "xxHash",
        "BSD-2-Clause",
        "2012-2021 Yann Collet",
        "https://github.com/Cyan4973/xxHash",
        "compiled in",
        "libxxhash-dev",
        "xxhash.h",
    ),
    Part(
        "libdeflate",
        "MIT",
        "2016 Eric Biggers",
        "https://github.com/ebiggers/libdeflate",
        "static",
        "libdeflate-dev",
        "libdeflate.h",
        ("Libdeflate", "Libdeflate::Libdeflate"),
        ("libdeflate",),
    ),
    Part(
        "zlib",
        "Zlib",
        "1995-2022 Jean-loup Gailly and Mark Adler",
        "https://zlib.net",
        "dynamic",
        "zlib1g-dev",
        "zlib.h",
        ("ZLIB", "ZLIB::ZLIB"),
        ("libz",),
    ),
    Part(
        "nanobind",
        "BSD-3-Clause",
        "2022 Wenzel Jakob",
        "https://github.com/wjakob/nanobind",
        "static",
        "pip:nanobind",
        "nanobind/",
        ("nanobind", "nanobind-static"),
    ),
    Part(
        "robin-map",
        "MIT",
        "2017 Thibaut Goetghebuer-Planchon",
        "https://github.com/Tessil/robin-map",
        "static",
        "pip:nanobind",
        "tsl/",
    ),
    Part(
        "libstdc++",
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        "Free Software Foundation, Inc.",
        "https://gcc.gnu.org",
        "static",
        "libstdc++-12-dev",
        "",
        (),
        ("libstdc++", "libgcc_s"),
    ),
    Part(
        "glibc",
        "LGPL-2.1-or-later",
        "Free Software Foundation, Inc.",
        "https://sourceware.org/glibc",
        "dynamic",
        "libc6-dev",
        "",
        ("Threads", "Threads::Threads"),
        ("libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64", "libpthread", "libdl"),
    ),
    Part("libcurl", "curl", "1996-present, Daniel Stenberg", "https://curl.se", "opened", "", "", (), ("libcurl",)),
    Part(
        "zstd",
        "BSD-3-Clause OR GPL-2.0-only",
        "Meta Platforms, Inc.",
        "https://facebook.github.io/zstd",
        "opened",
        "",
        "",
        (),
        ("libzstd",),
    ),
    Part(
        "CUDA",
        "LicenseRef-NVIDIA",
        "NVIDIA Corporation",
        "https://developer.nvidia.com/cuda-toolkit",
        "opened",
        "",
        "",
        (),
        ("libcuda", "libcublas", "libcufile"),
    ),
    Part(
        "LibTorch",
        "BSD-3-Clause",
        "the PyTorch contributors",
        "https://github.com/pytorch/pytorch",
        "headers of the program's own",
        "",
        "torch/",
    ),
    Part(
        "Sphinx",
        "BSD-2-Clause",
        "2007-present, the Sphinx team",
        "https://github.com/sphinx-doc/sphinx",
        "site",
        "pip:sphinx",
    ),
    Part("Furo", "MIT", "2020 Pradyun Gedam", "https://github.com/pradyunsg/furo", "site", "pip:furo"),
)

# How SPDX calls what a part is to Penstock.
RELATIONS = {
    "compiled in": ("CONTAINS", False),
    "static": ("STATIC_LINK", False),
    "dynamic": ("DYNAMIC_LINK", False),
    "opened": ("OPTIONAL_DEPENDENCY_OF", True),
    "headers of the program's own": ("OPTIONAL_DEPENDENCY_OF", True),
    "site": ("CONTAINS", False),
}


def version_of(package: str) -> str:
    """Of what this machine builds with; NOASSERTION where it has none, or the artefact takes what it finds."""
    if package.startswith("pip:"):
        for site in [
            None,
            *ROOT.glob(".venv/lib/python*/site-packages"),
            *ROOT.glob("build/sphinx/lib/python*/site-packages"),
        ]:
            found = metadata.distributions(name=package[4:], **({"path": [str(site)]} if site else {}))
            for one in found:
                return one.version
        return "NOASSERTION"
    command = ["dpkg-query", "-W", "-f", "${source:Upstream-Version}", package]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "NOASSERTION"
    return asked.stdout.strip() if package and asked.returncode == 0 and asked.stdout else "NOASSERTION"


def spdx(version: str, seconds: int) -> dict:
    """The same bytes for the same version, time and packages."""
    ours = {
        "SPDXID": "SPDXRef-Penstock",
        "name": "penstock-tensors",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "the Penstock authors",
    }
    packages, relations = [ours], []
    for part in PARTS:
        name = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", part.name)
        packages.append(
            {
                "SPDXID": name,
                "name": part.name,
                "versionInfo": version_of(part.package),
                "downloadLocation": "NOASSERTION",
                "homepage": part.home,
                "filesAnalyzed": False,
                "licenseConcluded": part.licence,
                "licenseDeclared": part.licence,
                "copyrightText": f"Copyright {part.holder}",
                "comment": part.how,
            }
        )
        relation, turned = RELATIONS[part.how]
        ends = (name, ours["SPDXID"]) if turned else (ours["SPDXID"], name)
        relations.append({"spdxElementId": ends[0], "relationshipType": relation, "relatedSpdxElement": ends[1]})
    describes = {
        "spdxElementId": "SPDXRef-DOCUMENT",
        "relationshipType": "DESCRIBES",
        "relatedSpdxElement": ours["SPDXID"],
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"penstock-tensors-{version}",
        "documentNamespace": f"https://penstock.invalid/spdx/penstock-tensors-{version}-{seconds}",
        "creationInfo": {
            "created": datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: script/third_parties.py"],
        },
        "hasExtractedLicensingInfos": [
            {
                "licenseId": "LicenseRef-NVIDIA",
                "name": "NVIDIA's terms",
                "extractedText": "Not distributed with Penstock. What is installed is used under NVIDIA's own terms.",
            }
        ],
        "packages": packages,
        "relationships": [describes, *relations],
    }


def debian_text(package: str, licence: str) -> str:
    """The text of one licence in the copyright file of a Debian package, whose lines begin with a space."""
    lines = Path(f"/usr/share/doc/{package}/copyright").read_text().split("\n")
    for number, line in enumerate(lines):
        if re.fullmatch(rf"License: {re.escape(licence)}", line, re.IGNORECASE) and lines[number + 1].startswith(" "):
            text = []
            for following in lines[number + 1 :]:
                if not following.startswith(" "):
                    break
                text.append("" if following.strip() == "." else following[1:].rstrip())
            return "\n".join(text)
    raise LookupError(f"{package} has no text of {licence}")


def notices() -> str:
    """Who made what is inside wheels, programs and the library, and under which terms: licences ask for this."""
    inside = [part for part in PARTS if part.how in ("compiled in", "static")]
    out = [
        "Penstock's wheels, programs and library have these works of others inside.",
        "script/third_parties.py makes this file.",
        "",
    ]
    out += [f"{part.name}: {part.licence}\n    Copyright (c) {part.holder}\n    {part.home}" for part in inside]
    texts = {
        "MIT": ("libfmt-dev", "Expat"),
        "BSD-3-Clause": ("libcli11-dev", "BSD-3-clause"),
        "BSD-2-Clause": ("libxxhash-dev", "BSD-2-clause"),
        "MPL-2.0": ("", ""),
    }
    for licence, (package, name) in texts.items():
        out += ["", "=" * 100, licence, "=" * 100, ""]
        out.append(
            debian_text(package, name)
            if package
            else "The terms are those of the Mozilla Public License, version 2.0: https://mozilla.org/MPL/2.0/\n"
            "Eigen's source is at the address above, and unchanged here."
        )
    out += [
        "",
        "=" * 100,
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        "=" * 100,
        "",
        "The GCC Runtime Library Exception permits what is compiled by GCC to have parts of libstdc++ inside under\n"
        "terms of its own: https://www.gnu.org/licenses/gcc-exception-3.1.html",
    ]
    return "\n".join(out) + "\n"


def main(words: list[str]) -> int:
    if len(words) == 3 and words[0] == "--spdx" and words[2].isdigit():
        json.dump(spdx(words[1], int(words[2])), sys.stdout, indent=2)
        print()
        return 0
    if words == ["--notices"]:
        sys.stdout.write(notices())
        return 0
    print("third_parties.py: use --spdx VERSION SECONDS or --notices", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
