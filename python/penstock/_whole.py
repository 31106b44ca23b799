"""Says at import why this package cannot work: another one lies in its place, or parts of it are missing.

PyPI's `penstock` is another project. Both install into a folder `penstock`: the later one replaces files of the first,
and removing one takes files of both away. `penstock` imports this module before anything else, and so do the packages
and modules below it that can be imported where `penstock/__init__.py` is not ours. Where all is well it looks at one
attribute and imports the compiled module, which is needed anyway.
"""

import sys

DISTRIBUTION = "penstock-tensors"

_MEND = (
    f"Remove both and install this one again: pip uninstall penstock {DISTRIBUTION}, "
    f"then install {DISTRIBUTION} (pip install . in its sources)"
)


def _foreign_package(package: object) -> str:
    ours = __file__.rpartition("/")[0] + "/__init__.py"
    found = getattr(package, "__file__", None)
    if found is None:
        return (
            f"{ours} is missing, so that `import penstock` gives an empty package. Removing PyPI's penstock, which is "
            f"another project, takes it away. {_MEND}"
        )
    return (
        f"{found} is not part of {DISTRIBUTION}, but {__file__} is. PyPI's penstock is another project, which uses the "
        f"same folder. {_MEND}"
    )


def _no_module(error: ImportError) -> str:
    import os
    from importlib.machinery import EXTENSION_SUFFIXES

    folder = os.path.dirname(__file__)
    built = sorted(name for name in os.listdir(folder) if name.startswith("_core.") and name.endswith(".so"))
    fitting = [name for name in built if name.removeprefix("_core") in EXTENSION_SUFFIXES]
    if fitting:
        return f"the compiled module {folder}/{fitting[0]} does not load: {error}"
    version = ".".join(map(str, sys.version_info[:2]))
    if built:
        return (
            f"{folder} has {', '.join(built)}, and this is Python {version}, which loads _core{EXTENSION_SUFFIXES[0]}. "
            f"Install {DISTRIBUTION} with this interpreter: {sys.executable} -m pip install"
        )
    return (
        f"{folder} has no compiled module, because it holds sources, or a part of an installation. In the first case "
        f"leave this folder, or take it off PYTHONPATH. In the second: {_MEND[0].lower()}{_MEND[1:]}"
    )


if getattr(sys.modules.get("penstock"), "__distribution__", None) != DISTRIBUTION:
    raise ImportError(_foreign_package(sys.modules.get("penstock")), name="penstock")
try:
    import penstock._core  # noqa: F401  (what follows in penstock/__init__.py takes names from it)
except ImportError as error:
    raise ImportError(_no_module(error), name=error.name, path=error.path) from error
