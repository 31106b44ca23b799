"""What contributors meet: forms and CI load and name what is there, and first tasks are lines of what is open."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
LABELS = yaml.safe_load((GITHUB / "labels.yml").read_text())


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("form", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem)
def test_a_form_is_whole(form):
    content = yaml.safe_load(form.read_text())
    assert {"name", "description", "labels", "body"} <= set(content)
    assert set(content["labels"]) <= {label["name"] for label in LABELS["labels"]}
    asked = [part for part in content["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    for part in asked:
        assert part["type"] in {"textarea", "input", "checkboxes", "dropdown"}
        assert part["attributes"]["label"]


def test_ci_runs_what_people_run():
    ci = yaml.safe_load((GITHUB / "workflows/ci.yml").read_text())
    assert {"push", "pull_request"} <= set(ci[True])  # YAML takes `on` for that
    assert ci["permissions"] == {"contents": "read"}
    runs = [step["run"] for job in ci["jobs"].values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in runs
    assert any("script/release --check" in run for run in runs)
    for run in runs:
        for path in re.findall(r"(?:\.ci|script|tests)/[\w/.]+", run):
            assert (ROOT / path).is_file(), path
    for job in ci["jobs"].values():
        assert job["timeout-minutes"] <= 360


@pytest.mark.parametrize("task", LABELS["first_tasks"], ids=lambda task: task["title"])
def test_a_first_task_is_open_and_says_where(task):
    assert words(task["open"]) in words((ROOT / "docs/design/open.md").read_text()), "the line is gone, so is the task"
    assert all((ROOT / place).exists() for place in task["where"])


def test_contributing_is_a_page_and_names_what_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(text.splitlines()) <= 60
    for target in re.findall(r"\]\(([^)#:]+)", text):
        assert (ROOT / target).exists(), target
    assert any(label["name"] == "first task" for label in LABELS["labels"])
    assert "`first task`" in text
