"""The examples run and print what they say, and the README shows them as they are."""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = "It prints:\n\n"


def docstring_and_code(path: Path) -> tuple[str, str]:
    """Return an example's docstring, and what stands below it."""
    source = path.read_text(encoding="utf-8")
    module = ast.parse(source)
    end = module.body[0].end_lineno
    return ast.get_docstring(module) or "", "\n".join(source.splitlines()[end:]).strip() + "\n"


def promised(path: Path) -> str:
    """Return what an example says that it prints."""
    return textwrap.dedent(docstring_and_code(path)[0].partition(SAYS)[2]).rstrip() + "\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_says(path: Path, tmp_path: Path) -> None:
    """DESIGN 5, "examples"; ours."""
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == promised(path)


def test_the_readme_shows_the_first_steps_and_what_they_print() -> None:
    """CONVENTIONS, "README": ten lines of Python and their output."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", readme, re.DOTALL))
    path = ROOT / "examples" / "first_steps.py"
    assert blocks["python"] == docstring_and_code(path)[1]
    assert promised(path) in readme
