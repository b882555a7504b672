"""The house rules, read from the source: import arrows, sizes, names, docstrings."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import hopling

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "hopling"

# A module imports what stands to its left, its own part, and nothing else of hopling.
ARROWS: list[set[str]] = [
    {"errors"},
    {"settings", "records", "episode", "progress", "waiting"},
    {"graphs", "dialects", "policies", "rewards"},
    {"tools"},
    {"environment"},
    {"rollout"},
    {"data", "evaluation"},
    {"training"},
    {"recipes"},
    {"apps", "testing"},
    {"__main__"},
]
RANKS = {part: rank for rank, parts in enumerate(ARROWS) for part in parts}
# Parts that know less than the arrows allow.
KNOWS = {
    "rewards": {"errors", "episode"},
    "tools": {"errors", "settings", "records", "episode", "graphs.base"},
    "environment": {"errors", "episode"},
    "rollout": {"errors", "episode", "environment"},
    "training": {"errors", "settings", "records", "episode", "dialects", "policies", "rewards"}
    | {"environment", "rollout", "evaluation"},
}
# Where the names that `from hopling import ...` offers come from.
HOMES = {
    name: home.removeprefix("hopling.")
    for name, home in {
        **{n: vars(hopling)[n].__module__ for n in hopling.__all__ if n in vars(hopling)},
        **vars(hopling)["_LAZY"],
    }.items()
}
HEAVY = {"torch", "transformers", "trl", "peft", "accelerate", "datasets"}
SLOW_TO_IMPORT = {*HEAVY, "pandas", "matplotlib", "httpx", "typer", "rich"}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
MACHINE_PATH = re.compile(r"(?<![\w./>])/(?:work|home|root|Users|mnt)/\w{2}|[A-Z]:\\\\?Users")


def test_modules_import_only_what_stands_to_their_left() -> None:
    """DESIGN 5, "Import arrows"."""
    broken = []
    for path in python_files("src"):
        part = part_of(path)
        if path == SOURCE / "__init__.py":
            continue
        for line, imported in hopling_imports(path):
            other = imported.split(".")[0]
            known = KNOWS.get(part)
            allowed = RANKS[other] < RANKS[part]
            if known is not None:
                allowed = any(imported == k or imported.startswith(k + ".") for k in known)
            if other != part and not allowed:
                broken.append(
                    f"{shown(path)}:{line} imports hopling.{imported}, which {part} may not know."
                )
    assert not broken, "\n".join(broken)


def test_every_part_has_its_place_in_the_arrows() -> None:
    """DESIGN 5: a part without a place would escape the arrows."""
    parts = {part_of(path) for path in python_files("src")} - {"__init__"}
    lost = sorted(parts - set(RANKS))
    assert not lost, f"ARROWS has no place for {', '.join(lost)}."


def test_torch_lives_in_local_policies_and_training_only() -> None:
    """DESIGN 5: hopling installs and imports without torch."""
    broken = []
    for path in python_files("src"):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(("training/", "policies/local")):
            continue
        for line, imported in imports(path):
            if imported.split(".")[0] in HEAVY:
                broken.append(f"{shown(path)}:{line} imports {imported}; only training may.")
    assert not broken, "\n".join(broken)


def test_importing_hopling_loads_nothing_slow() -> None:
    """DESIGN 5; benchmarks/import_time.py measures the time. Settings need no torch either."""
    script = "import sys, hopling; hopling.GRPO(), hopling.SFT(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = SLOW_TO_IMPORT & set(done.stdout.split())
    assert not loaded, f"import hopling loads {', '.join(sorted(loaded))}."


def test_the_public_names_are_sorted_and_can_be_loaded() -> None:
    """DESIGN 5: `__init__` holds the public names, sorted (constants, classes, functions)."""
    order = sorted(hopling.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert hopling.__all__ == order
    missing = [name for name in hopling.__all__ if not hasattr(hopling, name)]
    assert not missing, f"hopling has no {', '.join(missing)}."


def test_files_and_functions_are_short() -> None:
    """CONVENTIONS, "Shape": 400 lines, 60 lines, 6 parameters; a recipe 120 lines."""
    broken = []
    for path in python_files("src", "tests", "benchmarks", "examples"):
        num_lines = len(path.read_text(encoding="utf-8").splitlines())
        limit = 120 if SOURCE / "recipes" in path.parents else 400
        if num_lines > limit:
            broken.append(f"{shown(path)} has {num_lines} lines; at most {limit}.")
        for function in functions(tree(path)):
            where = f"{shown(path)}:{function.lineno} {function.name}"
            num_lines = (function.end_lineno or 0) - function.lineno + 1
            if num_lines > 60:
                broken.append(f"{where} has {num_lines} lines; at most 60.")
            if num_parameters(function) > 6:
                broken.append(f"{where} has {num_parameters(function)} parameters; at most 6.")
    assert not broken, "\n".join(broken)


def test_code_is_ascii_and_names_no_machine() -> None:
    """CONVENTIONS, "Comments": ASCII in code; and a path of one machine helps nobody else."""
    broken = []
    for path in python_files("src", "tests", "benchmarks", "examples"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.isascii():
                broken.append(f"{shown(path)}:{number} is not ASCII; write \\u escapes.")
            if MACHINE_PATH.search(line):
                broken.append(f"{shown(path)}:{number} holds a path of one machine.")
    assert not broken, "\n".join(broken)


def test_pages_name_no_machine() -> None:
    """Ours."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "pyproject.toml"]
    broken = [shown(p) for p in pages if MACHINE_PATH.search(p.read_text(encoding="utf-8"))]
    assert not broken, f"{', '.join(broken)} hold a path of one machine."


def test_modules_have_telling_names() -> None:
    """CONVENTIONS: a module is named for what it holds."""
    paths = list(python_files("src", "tests", "benchmarks", "examples"))
    parts = {p: {*p.relative_to(ROOT).with_suffix("").parts} for p in paths}
    broken = [shown(p) for p in paths if parts[p] & FORBIDDEN_NAMES]
    assert not broken, f"{', '.join(broken)}: choose names that say what is inside."


def test_public_modules_classes_and_functions_have_docstrings() -> None:
    """CONVENTIONS, "Docstrings"."""
    broken = []
    for path in python_files("src"):
        module = tree(path)
        if ast.get_docstring(module) is None:
            broken.append(f"{shown(path)} has no docstring.")
        for node in public_definitions(module):
            if ast.get_docstring(node) is None:
                broken.append(f"{shown(path)}:{node.lineno} {node.name} has no docstring.")
    assert not broken, "\n".join(broken)


def test_every_test_names_its_authority() -> None:
    """CONVENTIONS, "Tests": the docstring says a paper's equation, a spec, or "ours"."""
    broken = []
    for path in python_files("tests"):
        for function in functions(tree(path)):
            if function.name.startswith("test_") and ast.get_docstring(function) is None:
                broken.append(f"{shown(path)}:{function.lineno} {function.name} has no docstring.")
    assert not broken, "\n".join(broken)


def test_nobody_catches_every_exception() -> None:
    """CONVENTIONS, "Errors": only the command line's border may, or to clean up and raise."""
    broken = []
    for path in python_files("src"):
        if path == SOURCE / "apps" / "cli.py":
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler):
                name = ast.unparse(node.type) if node.type else "everything"
                reraised = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
                if name in ("everything", "Exception", "BaseException") and not reraised:
                    broken.append(f"{shown(path)}:{node.lineno} catches {name}.")
    assert not broken, "\n".join(broken)


def python_files(*folders: str) -> Iterator[Path]:
    """Yield the Python files of folders of the repository."""
    return chain.from_iterable(sorted((ROOT / folder).rglob("*.py")) for folder in folders)


def part_of(path: Path) -> str:
    """Return the part of hopling that a file belongs to: a top-level package or module."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def shown(path: Path) -> str:
    """Return a path as an error names it."""
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything that a file imports, names of modules included."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{shown(path)}:{node.lineno} imports relatively."
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def hopling_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name below hopling; a name that `__init__` offers counts as its home."""
    for line, name in imports(path):
        if name.startswith("hopling."):
            inner = name.removeprefix("hopling.")
            yield line, HOMES.get(inner, inner)


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function


def functions(module: ast.Module) -> Iterator[Function]:
    """Yield every function and method, inner ones too."""
    return (node for node in ast.walk(module) if isinstance(node, Function))


def num_parameters(function: Function) -> int:
    """Return how many parameters a caller sees; self and cls are not among them."""
    given = function.args
    names = [a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return len([name for name in names if name not in ("self", "cls")])


def public_definitions(module: ast.Module) -> Iterator[Definition]:
    """Yield public classes and functions; a method's docstring may stand in its protocol."""
    for node in module.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
