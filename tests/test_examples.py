"""The examples run and print what they say, and the README shows them as they are."""

import ast
import re
import shlex
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from hopling.apps.cli import main
from hopling.recipes import sog_r1
from hopling.settings import describe

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


@pytest.mark.parametrize("page", ["README.md", "docs/freebase.md", "docs/scale.md"])
def test_python_on_a_page_imports_what_there_is(page: str) -> None:
    """Ours: a renamed class would leave the pages behind."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    modules = [ast.parse(block) for block in blocks]
    wanted = [node for m in modules for node in m.body if isinstance(node, ast.ImportFrom)]
    assert wanted
    for node in wanted:
        module = import_module(str(node.module))
        lost = [alias.name for alias in node.names if not hasattr(module, alias.name)]
        assert not lost, f"{page}: {node.module} has no {', '.join(lost)}."


@pytest.mark.parametrize("page", ["README.md", "docs/scale.md"])
def test_settings_of_a_stage_on_a_page_are_there(page: str) -> None:
    """Ours: a renamed setting would leave the pages behind."""
    known = {entry.flag for entry in describe(sog_r1.Settings())}
    named = set(re.findall(r"--(?:sft|grpo)-[\w-]+", (ROOT / page).read_text(encoding="utf-8")))
    assert named
    assert named <= known


def test_commands_on_the_page_of_ones_own_graph_print_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours; what asks a model is left out, since that takes half a minute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    shown = typed(ROOT / "docs" / "own-graph.md")
    write_files(shown)
    commands = {c: lines for c, lines in shown.items() if re.match(r"hopling (graph|check)", c)}
    assert len(commands) == 5
    for command, lines in commands.items():
        with pytest.raises(SystemExit):
            main(shlex.split(command)[1:])
        printed = "".join(capsys.readouterr()).splitlines()
        lost = [line for line in lines if not any(line in other for other in printed)]
        assert not lost, f"{command} does not print {lost}, but {printed}"


def typed(page: Path) -> dict[str, list[str]]:
    """Return the commands of a page, each with the lines that it is said to print."""
    shown: dict[str, list[str]] = {}
    for block in re.findall(r"```\n(\$ .*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = (line.rstrip() for line in part.splitlines())
            shown[command] = [line.partition(" [...]")[0] for line in lines if line.strip("[.] ")]
    return shown


def write_files(shown: dict[str, list[str]]) -> None:
    """Write the files that a page shows by `cat`; two that stand side by side are told apart."""
    for command, lines in shown.items():
        names = re.findall(r"cat ([\w.]+)", command)
        width = command.find("$") + len("$ ")  # of the first file, with the mark before `cat`
        for k, name in enumerate(names):
            columns = (
                [line[width:] if k else line[:width] for line in lines] if width > 1 else lines
            )
            rows = ["\t".join(c.split()) if name.endswith(".tsv") else c for c in columns]
            Path(name).write_text("\n".join(filter(None, rows)) + "\n", encoding="utf-8")
    Path("bad.tsv").write_text("Q1\tflows_into\n", encoding="utf-8")
