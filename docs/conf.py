"""The documentation site: Markdown pages, Python's docstrings, and the public headers through doxygen (script/docs)."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Penstock"
numbers = re.search(r"use\((\d+), (\d+), (\d+)\)", (HERE.parent / "include/penstock/version.h").read_text())
assert numbers
release = version = ".".join(numbers.groups())
author = "the Penstock authors"
copyright = "the Penstock authors, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "breathe",
    # Our own, in _ext.
    "gallery",
    "mermaid_pictures",
    "notebook_pages",
    "other_pages",
    "outside_links",
    "property_types",
    "reference_pages",
    "root_file",
]
graphviz_output_format = "svg"
exclude_patterns = ["_ext"]
html_theme = "furo"
html_title = f"Penstock {release}"
html_show_sphinx = False
html_copy_source = False
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_static_path = ["_ext/static"]
html_css_files = ["wide_code.css"]
# Quotes in these texts are code as often as not.
smartquotes = False

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4

# Docstrings and headers write code in single backticks, as Markdown does.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

breathe_projects = {"penstock": str(HERE.parent / "build" / "docs" / "doxygen" / "xml")}
breathe_default_project = "penstock"
breathe_show_include = False
breathe_show_enumvalue_initializer = False
cpp_maximum_signature_line_length = 100

# Each header's page opens the namespace again.
suppress_warnings = ["duplicate_declaration.cpp"]

# Types of others, which have no page here, and types that only our own code names.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!penstock\b).+\..+"),
    (r"py:.*", r"penstock\.(.+\.)?_.+"),
    (r"py:.*", r"_.+"),
    # Short names of annotations, and a type of Python's that its own pages do not have.
    (r"py:class", r"Keys|Sizes|EllipsisType"),
    (r"cpp:.*", r"(std|at|c10|torch|Eigen)(::.*)?"),
    (r"cpp:.*", r"DLManagedTensor(Versioned)?"),
    # Inner parts, which public headers only name.
    (r"cpp:.*", r"(penstock::)?(data|detail|device)(::.*)?"),
    (r"cpp:.*", r"Impl"),
    # A default argument, which the parser takes for a member of the parameter of that name.
    (r"cpp:.*", r"collate::stack"),
]
