#!/usr/bin/env python3
"""Checks that includes point only downward, between layers and between the rooms of a layer, that no two units include
each other, that public headers need nothing but the standard library, and that internal ones open with a comment. A
unit is a .cpp and the .h of its name.

    script/check_layers.py [ROOT]

Prints one line for each include that breaks a rule and exits 1 when there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

# What each layer may include: itself and the layers named.
BELOW = {
    "core": [],
    "device": ["core"],
    "ops": ["device", "core"],
    "value": ["ops", "device", "core"],
    "io": ["device", "core"],
    "doctor": ["io", "device", "core"],
    "format": ["io", "value", "ops", "device", "core"],
    "archive": ["format", "io", "value", "ops", "device", "core"],
    "data": ["archive", "format", "io", "value", "ops", "device", "core"],
    "cli": ["data", "doctor", "archive", "format", "io", "value", "ops", "device", "core"],
    "python": ["data", "doctor", "archive", "format", "io", "value", "ops", "device", "core"],
    "command": ["cli"],
}

# The rooms (folders) of a layer, lowest first. A room may include itself, the rooms before it and the headers at the
# top of its layer. What lies at the top (the tables, and what all rooms speak of) may include any room. A room that is
# not in the list, as that of a new format, comes after all of them.
ROOMS = {
    "io": ["file", "copy", "source", "read", "remote", "gds", "move"],
    "format": ["text", "tar", "zip", "safetensors", "pt/pickle", "pt", "numpy"],
    "data": "trace sample transform scan files pack dataset sampler stream tar collate batch loader".split(),
    "cli": ["terminal", "json", "info", "inspect", "report"],
    "python": "interpreter arrays call tensor content file dataset worker loader".split(),
}

# The rooms of format that data may include. It knows no format: what it needs of one, the row of the table tells.
DATA_MAY_INCLUDE = {"text", "tar"}
FORMAT_BY_NAME = re.compile(r"\bk[A-Z]\w*Format\b|\bformat\(\) *[!=]=")

# The layer that implements each public header.
PUBLIC = {
    "standard.h": "core",
    "error.h": "core",
    "progress.h": "core",
    "dtype.h": "core",
    "shape.h": "core",
    "half.h": "core",
    "flag.h": "core",
    "integer.h": "core",
    "text_view.h": "core",
    "fwd.h": "core",
    "version.h": "core",
    "iterate.h": "core",
    "device.h": "device",
    "stream.h": "device",
    "buffer.h": "device",
    "tensor.h": "device",
    "visit.h": "device",
    "format.h": "device",
    "transfer.h": "device",
    "dlpack.h": "ops",
    "mdspan.h": "device",
    "eigen.h": "ops",
    "detail/view.h": "device",
    "ops.h": "ops",
    "random.h": "ops",
    "source.h": "io",
    "remote.h": "io",
    "report.h": "io",
    "value.h": "value",
    "entry.h": "format",
    "load.h": "archive",
    "raw.h": "archive",
    "writable.h": "archive",
    "async.h": "archive",
    "save.h": "format",
    "writer.h": "format",
    "ranks.h": "data",
    "sampler.h": "data",
    "detail/functions.h": "data",
    "collate.h": "data",
    "dataset.h": "data",
    "documents.h": "data",
    "shards.h": "data",
    "loader.h": "data",
    "join.h": "data",
    "labels.h": "data",
    "lengths.h": "data",
    "windows.h": "data",
    "mix.h": "data",
    "sample_stream.h": "data",
    "promote.h": "data",
    "pack.h": "data",
    "penstock.h": "data",
    "torch.h": "data",
    "torch_optimizer.h": "data",
    "transforms.h": "data",
    "detail/torch_optimizer_members.h": "data",
}

# Adapters to another library, which whoever includes them has anyway; penstock.h leaves them out.
ADAPTERS = {
    "eigen.h": "Eigen/",
    "torch.h": "torch/",
    "torch_optimizer.h": "torch/",
    "torch_optimizer_members.h": "torch/",
}

# Third-party headers, by the layers that may include them; a name ending in '/' is a folder.
THIRD_PARTY = {
    "fmt/": ["core"],
    "nlohmann/": ["core", "doctor", "io", "value", "format", "archive", "data", "cli", "python"],
    "libdeflate.h": ["io", "format", "archive"],
    "zlib.h": ["io", "format", "archive", "cli"],
    "CLI/": ["cli"],
    "nanobind/": ["python"],
    "Eigen/": ["ops"],
    "xxhash.h": ["archive", "io"],
    "Python.h": ["python", "command"],
}

# Only src/device knows CUDA; src/io/gds/gds.cpp is the one exception.
CUDA = re.compile(r"^(cuda|cufile|cublas|cudnn|nvrtc|nvml|nvToolsExt)")

STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
    climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal
    cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution
    filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream
    istream iterator latch limits list locale map mdspan memory memory_resource mutex new numbers numeric optional
    ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span
    sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version""".split()
)

# C and POSIX headers, for sources only.
SYSTEM = re.compile(r"^(sys|linux|asm|bits|netinet|arpa)/|^[a-z0-9_]*intrin\.h$")
SYSTEM_FILES = set(
    "aio arm_acle arm_neon cxxabi dirent dlfcn errno fcntl glob malloc poll pthread sched setjmp signal termios time "
    "ucontext unistd".split()
)

# A setuid program must not take libraries from its user's environment: core/environment.h asks whether it may.
GETENV = re.compile(r"\bgetenv\s*\(")
MAY_GETENV = "src/core/environment.cpp"

INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")')
SUFFIXES = {".h", ".cpp"}

# What stands above the first declaration of a header: directives, namespaces, classes that others define, short names.
PREAMBLE = re.compile(r"#|(inline )?namespace\b|using namespace\b|(class|struct|enum class) [^{]*;$|using [^;]*;$|}")


def includes(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Line number, name and whether it was quoted, for each include of a file."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := INCLUDE.match(line):
            yield number, found[1][1:-1], found[1][0] == '"'


def third_party_layers(name: str) -> list[str] | None:
    """The layers that may include this third-party header; None when it is unknown."""
    for known, layers in THIRD_PARTY.items():
        if name == known or (known.endswith("/") and name.startswith(known)):
            return layers
    return None


def check_system(name: str, layer: str, path: Path, public: bool) -> str | None:
    """What is wrong with #include <name>, if anything."""
    if CUDA.match(name):
        allowed = layer == "device" or path.as_posix().endswith("src/io/gds/gds.cpp")
        return None if allowed and not public else "only src/device may include CUDA's headers"
    if name in STANDARD:
        return None
    if public and path.name in ADAPTERS and name.startswith(ADAPTERS[path.name]):
        return None
    if public:
        return "a public header may include only the standard library and penstock/"
    if SYSTEM.match(name) or name.removesuffix(".h") in SYSTEM_FILES:
        return None
    layers = third_party_layers(name)
    if layers is None:
        return "not a header this check knows: add it to THIRD_PARTY or SYSTEM_FILES in script/check_layers.py"
    return None if layer in layers else f"{layer} may not use this library"


def check_own(name: str, layer: str, path: Path, public: bool) -> str | None:
    """What is wrong with #include "name", if anything."""
    folder, _, rest = name.partition("/")
    if folder == "penstock":
        if rest not in PUBLIC:
            return "not a public header this check knows: add it to PUBLIC in script/check_layers.py"
        target = PUBLIC[rest]
    elif public:
        return "a public header may include only the standard library and penstock/"
    elif folder in BELOW and rest:
        target = folder
    elif layer == "python" and (folder in ROOMS["python"] or not rest):
        return None
    else:
        return 'write it as "layer/file.h" or "penstock/file.h"'
    allowed = [layer, *BELOW[layer]]
    return None if target in allowed else f"{layer} may include only {', '.join(allowed)}, and this is {target}"


def folder_of(layer: str, root: Path) -> Path:
    """Where the files of a layer lie."""
    outside = {"cli": root / "cli", "python": root / "python" / "src", "command": root / "python" / "command"}
    return outside.get(layer, root / "src" / layer)


def room_of(path: str, layer: str) -> str | None:
    """The room of "layer/room/file.h": the longest listed name that fits, else its first folder; None at the top."""
    folder = path.removeprefix(f"{layer}/").rpartition("/")[0]
    if not folder:
        return None
    listed = [room for room in ROOMS[layer] if f"{folder}/".startswith(f"{room}/")]
    return max(listed, key=len) if listed else folder.partition("/")[0]


def check_room(name: str, layer: str, path: Path, root: Path) -> str | None:
    """What is wrong with a room of a layer including "layer/other_room/file.h", if anything."""
    if layer == "python" and name.partition("/")[0] in ROOMS[layer]:  # its includes begin with the room
        name = f"python/{name}"
    if layer not in ROOMS or not name.startswith(f"{layer}/"):
        return None
    own = room_of(f"{layer}/{path.relative_to(folder_of(layer, root)).as_posix()}", layer)
    other = room_of(name, layer)
    if own is None or other is None or own == other:
        return None
    order = ROOMS[layer]
    if other in order and (own not in order or order.index(other) < order.index(own)):
        return None
    return f"{layer}/{other} does not come before {layer}/{own} in ROOMS of script/check_layers.py"


def check_formats(path: Path, root: Path) -> Iterator[str]:
    """What makes a file of src/data or cli know a format, so that another one would be slower or other there."""
    place = path.relative_to(root)
    layer = "data" if path.is_relative_to(root / "src" / "data") else place.parts[0]
    if layer not in ("data", "cli"):
        return
    for number, name, _ in includes(path) if layer == "data" else ():
        room = room_of(name, "format") if name.startswith("format/") else None
        if room is not None and room not in DATA_MAY_INCLUDE:
            yield f'{place}:{number}: "{name}": data may know no format: ask the row of the table, format::Format'
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if FORMAT_BY_NAME.search(line.partition("//")[0]):
            yield f"{place}:{number}: {layer} may know no format by name: ask the row of the table, format::Format"


def check_environment(path: Path, root: Path) -> Iterator[str]:
    if path.relative_to(root).as_posix() == MAY_GETENV:
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if GETENV.search(line.partition("//")[0]):
            yield f"{path.relative_to(root)}:{number}: getenv: read the environment by core::environment"


def check_file(path: Path, root: Path, layer: str, public: bool) -> Iterator[str]:
    yield from check_environment(path, root)
    yield from check_formats(path, root)
    for number, name, quoted in includes(path):
        check = check_own if quoted else check_system
        if problem := check(name, layer, path, public):
            shown = f'"{name}"' if quoted else f"<{name}>"
            yield f"{path.relative_to(root)}:{number}: {shown}: {problem}"
        elif quoted and not public and (problem := check_room(name, layer, path, root)):
            yield f'{path.relative_to(root)}:{number}: "{name}": {problem}'


def units_of(paths: list[Path], root: Path) -> dict[Path, set[Path]]:
    """The units that each unit includes: a source with its header counts as one."""
    bases = [root / "src", root, root / "python" / "src"]
    units: dict[Path, set[Path]] = {}
    for path in paths:
        included = units.setdefault(path.with_suffix(""), set())
        for _, name, quoted in includes(path):
            found = [base / name for base in [*bases, path.parent] if quoted and (base / name).is_file()]
            included.update(other.with_suffix("") for other in found[:1])
        included.discard(path.with_suffix(""))
    return units


def circles(units: dict[Path, set[Path]]) -> Iterator[list[Path]]:
    """Units that lead back to themselves by what they include, each once: the shortest way from its first one."""
    told: set[Path] = set()
    for unit in sorted(units):
        ways = [[unit, other] for other in sorted(units[unit])]
        seen: set[Path] = set()
        while ways and unit not in told:
            way = ways.pop(0)
            if way[-1] == unit:
                told.update(way)
                yield way
            elif way[-1] not in seen:
                seen.add(way[-1])
                ways += [[*way, other] for other in sorted(units.get(way[-1], ()))]


def check_circles(paths: list[Path], root: Path) -> Iterator[str]:
    for way in circles(units_of(paths, root)):
        names = [unit.relative_to(root).as_posix() for unit in way]
        yield f"{names[0]}: these units include each other: {' -> '.join(names)}; move what both need to a third"


def opens_with_comment(text: str) -> bool:
    """Whether a header says what it is for: a comment above its first declaration."""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            return True
        if line and not PREAMBLE.match(line):
            return False
    return False


def check_openings(folders: list[Path], root: Path) -> Iterator[str]:
    for path in sorted(path for folder in folders for path in folder.rglob("*.h")):
        if not opens_with_comment(path.read_text()):
            yield f"{path.relative_to(root)}: say what this header is for, and how it fits, above its first declaration"


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def check_tree(root: Path) -> Iterator[str]:
    """Every broken rule under `root`, one line each."""
    for path in sources(root / "include" / "penstock"):
        layer = PUBLIC.get(path.relative_to(root / "include" / "penstock").as_posix())
        if layer is None:
            yield f"{path.relative_to(root)}: add this public header to PUBLIC in script/check_layers.py"
            continue
        yield from check_file(path, root, layer, public=True)
    folders = {layer: folder_of(layer, root) for layer in BELOW}
    for layer, folder in folders.items():
        for path in sources(folder):
            yield from check_file(path, root, layer, public=False)
    yield from check_circles([path for folder in folders.values() for path in sources(folder)], root)
    for path in sources(root / "src"):
        if path.relative_to(root / "src").parts[0] not in BELOW:
            yield f"{path.relative_to(root)}: not in a layer"


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = [*check_tree(root), *check_openings([root / "src", root / "cli", root / "python" / "src"], root)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
