"""PAPERS.md has a line for every source that the code names, and the equations have their numbers.

The factors of SoG-R1's reward are worked by hand in tests/rewards/test_conduct.py, T_d in
tests/data/test_teach.py, the advantage in tests/training/test_advantages.py and the update in
tests/training/test_grpo.py; here is what they give together.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.dialects import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Answer, Call, Episode, Task
from hopling.policies.scripted import Scripted
from hopling.recipes import cny
from hopling.recipes import sog_r1 as recipe
from hopling.rewards import sog_r1, thrift
from hopling.rollout import rollout
from hopling.settings import describe
from hopling.tools import OneHopSearch
from hopling.training.advantages import standardized
from small_graph import movies

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "PAPERS.md").read_text(encoding="utf-8")
CODE = [path for folder in ("src", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
# what stands between brackets is a source when it begins with a name and holds a place or a year
SOURCE = re.compile(r"\[([A-Z][\w-]*\w,? [^\[\]]*)\]")
PLACE = re.compile(r"App\. [A-Z]|(?:Eq\.|Table|Figure|Alg\.) \d+|B\d\d|\d\d\d\d|\d\.\d")
NAMED = re.compile(rf"([A-Z][\w-]*\w) (?={PLACE.pattern})")
LINK = re.compile(r"\]\((\w[^):]*)\)")
CALL = Call("Search", {"entities": ["m.1"], "direction": "outgoing"})


def notes(path: Path) -> Iterator[str]:
    """Yield the comments and texts of a file."""
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


def places(source: str) -> set[str]:
    """Return the single places of a source.

    >>> sorted(places("SoG-R1 4.4; GTA-RAG Eq. 20, App. A"))
    ['GTA-RAG App. A', 'GTA-RAG Eq. 20', 'SoG-R1 4.4']
    """
    found, name = set(), source.partition(" ")[0].strip(",")
    for part in re.split(r"[;,]", source):
        begins = NAMED.match(part.strip())
        if begins and not PLACE.match(part.strip()):
            name = begins[1]
        found |= {f"{name} {place}" for place in PLACE.findall(part)}
    return found


def sources() -> dict[str, str]:
    """Return every place that the code names, and where."""
    found: dict[str, str] = {}
    for path in CODE:
        for note in notes(path):
            for source in SOURCE.findall(note):
                for place in places(source):
                    found.setdefault(place, path.relative_to(ROOT).as_posix())
    for entry in describe(recipe.Settings()):
        for place in PLACE.findall(entry.source):
            found.setdefault(f"SoG-R1 {place}", f"the default of {entry.name}")
    own = [entry for entry in describe(cny.Settings()) if "." not in entry.name]
    for entry in own:
        for place in PLACE.findall(entry.source):
            found.setdefault(f"CNY {place}", f"the default of {entry.name}")
    return found


def test_every_source_in_the_code_has_a_line() -> None:
    """CONVENTIONS, "Docstrings": sources are written [CNY Eq. 7], and each has a line."""
    heads = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|")]
    held = set().union(*(places(head.strip()) for head in heads))
    lost = [f"{place} ({where})" for place, where in sorted(sources().items()) if place not in held]
    assert not lost, f"PAPERS.md has no line for {'; '.join(lost)}."


@pytest.mark.parametrize("page", ["PAPERS.md", "ARCHITECTURE.md", "docs/scale.md"])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    """Ours: a page that names a test which is gone proves nothing."""
    text = (ROOT / page).read_text(encoding="utf-8")
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = re.findall(r"`(test_\w+)`", text)
    lost = [name for name in named if f"def {name}(" not in tests]
    assert named
    assert not lost, f"{page} names {', '.join(lost)}."


def test_every_file_that_a_page_names_exists() -> None:
    """Ours."""
    lost = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"(?<![\w/])((?:src|tests|benchmarks|examples|docs)/[\w/]+\.\w+)", text)
        named += [
            page.parent.relative_to(ROOT).joinpath(to).as_posix() for to in LINK.findall(text)
        ]
        lost += [f"{page.name}: {name}" for name in named if not (ROOT / name).exists()]
    assert not lost, "; ".join(lost)


def played(num_calls: int, answer: str) -> Episode:
    """Return an episode that calls the tool so often and gives this answer."""
    task = Task("t", "Who directed Kismet?", ("m.1",), ("Ann Lee",))
    world = Environment(lambda task: task.question, (OneHopSearch(movies()),), ToolCalls(), 20)
    actions = [*[CALL] * num_calls, Answer(braced([answer]))]
    turns = [world.dialect.write([action]) for action in actions]
    return rollout(Scripted({"t": turns}), world, [task])[0]


def test_a_group_of_episodes_gets_the_advantages_of_the_paper() -> None:
    """SoG-R1 4.4 with T_d = 2, then GRPO's advantage; worked by hand.

    r = 1, 1 - .05 (4 - 2) = .9, 0 (wrong), 0 (no call); the mean is .475, the deviations .525,
    .425, -.475, -.475, and the population's std sqrt(.2269) = .4763.
    """
    group = [played(2, "Ann Lee"), played(4, "Ann Lee"), played(1, "Bo Ek"), played(0, "Ann Lee")]
    rewards = [sog_r1(2)(episode) for episode in group]
    assert rewards == pytest.approx([1.0, 0.9, 0.0, 0.0])
    assert standardized(rewards) == pytest.approx([1.1022, 0.8923, -0.9972, -0.9972], abs=1e-4)


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=7),
    st.integers(1, 7),
    st.floats(0, 1),
    st.floats(0.01, 1),
)
def test_no_price_of_calls_puts_a_wrong_answer_above_a_right_one(
    calls: list[int], num_wrong: int, penalty: float, floor: float
) -> None:
    """SoG-R1 4.4: neither constant can change the sign between a right and a wrong episode."""
    right = [thrift(n, 2, penalty=penalty, floor=floor) for n in calls]
    rewards = right + [0.0] * num_wrong
    advantages = standardized(rewards)
    assert min(advantages[: len(calls)]) > max(advantages[len(calls) :])
