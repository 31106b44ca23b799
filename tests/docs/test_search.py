"""A search of the site in users' words finds a page for users.

Sphinx's search gives the pages that have all words of a query; docs/_ext/scorer.js puts design pages and the changelog
last. So for each query here, some page that is neither of these has all its words.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUERIES = [
    "weights_only untrusted",
    "async checkpoint",
    "save asynchronously",
    "checksum corrupted",
    "corrupted file",
    "thread safe",
    "slow loader profile",
    "pin_memory",
    "out of memory",
    "OOM",
    "how many num_workers",
    "resume epoch",
    "shuffle seed",
    "multiprocessing fork",
    "truncated download",
    "GIL",
    "pickle security",
    "arbitrary code execution",
    "atomic save",
    "crash during save",
    "fsync",
    "nonblocking",
    "FSDP",
    "max_shard_size",
    "half precision",
    "inspect file",
    "partial download",
    "partial load",
    "GPU idle utilization",
    "deterministic",
    "reproducible",
    "train test split",
    "custom collate",
    "channels_last",
    "threadsafe multithreading",
    "nogil",
    "deadlock fork",
    "stuck hangs freeze",
    "KeyboardInterrupt",
    "allow_pickle",
    "endianness",
    "mypy",
    "Jupyter",
    "zarr",
    "lmdb",
]


def pages_for_users() -> dict[str, set[str]]:
    behind = {"design", "project", "generated", "_ext"}
    pages = [page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in behind]
    return {page.name: set(re.findall(r"\w+", page.read_text().lower())) for page in pages}


@pytest.mark.parametrize("query", QUERIES)
def test_a_page_for_users_has_all_words(query):
    words = set(query.lower().split())
    assert [name for name, found in pages_for_users().items() if words <= found]


def test_design_and_changes_rank_last():
    scorer = (DOCS / "_ext/scorer.js").read_text()
    ranked_last = re.search(r"kBehind = \[(.*?)\]", scorer)[1]
    assert '"design/"' in ranked_last
    assert '"project/"' in ranked_last
