from typing import get_args

import pytest

from hopling.episode import Task
from hopling.recipes.prompts import compact, student
from hopling.recipes.prompts.teaching import Dataset, exemplars, played, program, teacher
from small_graph import movies

DATASETS = get_args(Dataset)
SPARQL = (
    "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\nSELECT ?x {\n"
    "<http://rdf.freebase.com/ns/m.1> <http://rdf.freebase.com/ns/film.film.directed_by> ?x .\n}"
)
TASK = Task(
    "t1",
    "Who directed Kismet?",
    ("m.1", "m.77"),
    ("Ann Lee",),
    ("m.3",),
    hints={"sparql": SPARQL, "path": ["film.film.directed_by"]},
)


def test_the_tiny_models_prompt_is_the_question_and_a_line_for_each_entity():
    """Ours: a tiny model reads no rules."""
    prompt = compact(movies())(TASK)

    assert prompt.system == ""
    assert prompt.user == "Who directed Kismet?\n| m.1 | Kismet |\n| m.77 | m.77 |"


def test_the_student_reads_rules_question_and_entities_but_no_program():
    """SoG-R1 App. A: the student gets no SPARQL and no exemplars."""
    prompt = student(movies())(TASK)

    assert prompt.user == "Question: Who directed Kismet?\n\nEntities:\n- m.1: Kismet\n- m.77: m.77"
    assert '"Final answer:"' in prompt.system
    assert "directed_by" not in prompt.system + prompt.user
    assert "SPARQL" not in prompt.system + prompt.user


@pytest.mark.parametrize("prompt", [student(movies())(TASK), compact(movies())(TASK)])
def test_no_prompt_of_the_student_holds_an_answer(prompt):
    """Law 3: only what a policy may know reaches it."""
    assert "Ann Lee" not in prompt.system + prompt.user
    assert "m.3" not in prompt.user


def test_the_teacher_reads_the_gold_query_with_short_names_after_the_question():
    """SoG-R1 4.2: the gold query is the scaffold."""
    prompt = teacher(movies(), "webqsp")(TASK)

    assert prompt.user == (
        "Question: Who directed Kismet?\n\nEntities:\n- m.1: Kismet\n- m.77: m.77\n\n"
        "Gold SPARQL:\nSELECT ?x {\nns:m.1 ns:film.film.directed_by ?x .\n}"
    )


def test_a_task_without_a_query_shows_its_gold_path():
    """Ours: MetaQA has paths only."""
    task = Task("t", "?", ("m.1",), hints={"path": ["directed_by", "^directed_by"]})

    assert program(task).endswith(": directed_by, ^directed_by")


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_teacher_sees_five_worked_examples_of_its_dataset(dataset: Dataset):
    """SoG-R1 App. A: K = 5, each with dictionary, query, reading, calls, tables and answer."""
    system = teacher(movies(), dataset)(TASK).system

    assert [system.count(f"## Example {n}:") for n in range(1, 7)] == [1, 1, 1, 1, 1, 0]
    assert system.count("\n\nReading:\n1. ") == 5
    assert system.count("\n\nFinal answer: {") == 5
    assert "{unknown}" not in system


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_examples_show_every_kind_of_walk(dataset: Dataset):
    """SoG-R1 App. A: single hop, two hops, many answers, batches, and probe-then-filter.

    A CWQ question composes at least two hops.
    """
    episodes = [played(row) for row in exemplars(dataset)]
    calls = [[call for turn in e.turns for call in turn.calls] for e in episodes]
    answers = [e.answer.text for e in episodes if e.answer]

    assert dataset == "cwq" or any(len(made) == 1 for made in calls)
    assert any(len(made) > 1 and "properties" not in made[1].arguments for made in calls)
    assert any(len(call.arguments["entities"]) > 1 for made in calls for call in made)
    assert any(answer.count("{") > 1 for answer in answers)
    filtered = [made for made in calls if any("properties" in call.arguments for call in made)]
    assert filtered
    assert all("properties" not in made[0].arguments for made in calls)


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_entity_of_an_example_has_a_name(dataset: Dataset):
    """Ours: the entity dictionary names what the question is about."""
    for row in exemplars(dataset):
        assert set(row["start"]) <= set(row["names"])
