"""Tasks on text graphs, each played with its gold answer."""

import json
from collections import Counter

import pytest

from hopling.data.text_graphs import LabeledGraph
from hopling.data.text_sets import explagraphs, freebase, webqsp, wikispeedia, wordnet
from hopling.data.text_tasks import (
    Stance,
    edge_tasks,
    node_tasks,
    open_tasks,
    split_of,
    stance_tasks,
)
from hopling.dialects.tags import Tags
from hopling.environment import Environment
from hopling.episode import Answer, Call, Episode, Task
from hopling.errors import DataError, SettingsError
from hopling.graphs.text import TextGraph
from hopling.graphs.text_readers import TextGraphFile
from hopling.policies.scripted import Scripted
from hopling.recipes.prompts.walking import Telling
from hopling.rewards.ladder import hits_substring, ladder, right_class
from hopling.rollout import rollout
from hopling.testing import SealedTask
from hopling.tools.walk import Walk
from small_graph import movies

GRAPH = TextGraph.of(
    {"1": "Ann: a poet", "2": "Oslo: a city", "3": "Norway: a country", "4": "Bo: a king"},
    [("1", "2"), ("2", "3"), ("3", "4")],
    classes={"1": "person", "2": "place", "3": "place", "4": "person"},
)
RELATIONS = {f"r{k}": f"relation {k}" for k in range(14)}
EDGES = {
    "train": [("1", "r1", "2"), ("2", "r2", "3"), ("2", "r3", "3")],
    "test": [("3", "r4", "4")],
}
STANCE = Stance(
    "Women should not fight.",
    "Women have the same rights.",
    "counter",
    (("women", "is a", "citizens"), ("citizens", "have", "rights"), ("rights", "cause", "duties")),
    "test",
)


def played(labeled: LabeledGraph, task: Task, *actions: Call | Answer) -> Episode:
    """Return the episode in which these actions were taken."""
    walk = Walk(labeled.graph)
    dialect = Tags({"walk": "node"})
    prompt = Telling(labeled.classes, 5, is_open=labeled.is_open).prompt(walk, "walk")
    world = Environment(prompt, (walk,), dialect, 5)
    script = {task.id: [dialect.write([action]) for action in actions]}
    return rollout(Scripted(script), world, [task])[0]


def test_the_gold_answer_of_every_family_earns_full_reward_and_another_does_not():
    """CONVENTIONS, "Tests"; either the name or the number of a choice is an answer."""
    made = [
        node_tasks("n", TextGraphFile(GRAPH, {})),
        edge_tasks("e", GRAPH, EDGES, RELATIONS),
        stance_tasks("s", [STANCE]),
    ]
    for labeled in made:
        for task in (task for own in labeled.tasks.values() for task in own):
            for gold in (*task.answers, *task.answer_ids):
                assert ladder()(played(labeled, task, Answer(gold))) == 1.0
            assert ladder()(played(labeled, task, Answer("nothing"))) == 0.2


def test_nodes_are_divided_by_their_names_alone():
    """Ours: the same everywhere, whatever else is in the graph; splits of a file come first."""
    splits = Counter(split_of(f"g/{k}") for k in range(2000))
    assert {s: round(n / 2000, 1) for s, n in splits.items()} == {
        "train": 0.6,
        "valid": 0.2,
        "test": 0.2,
    }
    given = node_tasks("n", TextGraphFile(GRAPH, {"1": "train", "2": "test"}))
    assert {s: [t.start for t in own] for s, own in given.tasks.items()} == {
        "train": [("1",)],
        "test": [("2",)],
    }
    assert given.classes == ("person", "place")


def test_an_edge_has_ten_choices_that_are_the_same_each_time():
    """CNY App. D.4: K = 10, gold and nine drawn deterministically; two anchors."""
    (task,) = edge_tasks("e", GRAPH, EDGES, RELATIONS).tasks["test"]
    assert edge_tasks("e", GRAPH, EDGES, RELATIONS).tasks["test"] == (task,)
    choices = [line.partition(": ") for line in task.question.splitlines()[1:11]]
    assert [number for number, _, _ in choices] == [str(k) for k in range(10)]
    assert len({text for _, _, text in choices}) == 10
    assert choices[int(task.answer_ids[0])][2] == task.answers[0] == "relation 4"
    assert task.start == ("3", "4")
    assert Walk(GRAPH).first(task) == ["2"]


def test_no_distractor_is_true_as_well():
    """Ours: r2 and r3 both lead from 2 to 3."""
    (_, second, _) = edge_tasks("e", GRAPH, EDGES, RELATIONS).tasks["train"]
    choices = second.question.splitlines()[1:11]
    assert not any(line.endswith(": relation 3") for line in choices)


def test_a_limit_takes_the_same_edges_each_time():
    """Ours."""
    some = edge_tasks("e", GRAPH, EDGES, RELATIONS, max_tasks=2).tasks
    assert [len(own) for own in some.values()] == [2, 1]
    assert some == edge_tasks("e", GRAPH, EDGES, RELATIONS, max_tasks=2).tasks


def test_a_stance_shows_names_first_and_relations_on_a_walk():
    """CNY App. D.5: the seed and what is next to it; the gold string is never shown."""
    labeled = stance_tasks("s", [STANCE])
    (task,) = labeled.tasks["test"]
    names = {name: node for node, name in labeled.graph.names.items()}
    episode = played(labeled, task, Call("walk", {"node": names["rights"]}), Answer("counter"))
    assert "is a" not in episode.prompt.user
    assert f"[{names['citizens']}]: citizens" in episode.prompt.user
    assert f"[{names['duties']}]" not in episode.prompt.user
    walked = episode.turns[0].observations[0].text.splitlines()
    assert walked == [
        f"[{names['rights']}] rights. Connections: <- have [{names['citizens']}] citizens; "
        f"cause -> [{names['duties']}] duties.",
        f"[{names['duties']}]: duties",
    ]


def test_no_walk_leaves_its_own_stance():
    """CNY App. D.5: all concept graphs in one, disjoint, though concepts have the same names."""
    labeled = stance_tasks("s", [STANCE, STANCE])
    graph = labeled.graph
    reached = []
    for task in labeled.tasks["test"]:
        seen, newest = set(), set(task.start)
        while newest:
            seen |= newest
            newest = {other for node in newest for other in graph.neighbors(node)} - seen
        reached.append(seen)
    assert reached[0].isdisjoint(reached[1])
    assert [len(seen) for seen in reached] == [5, 5]


def test_a_question_is_walked_on_its_own_part_of_the_graph():
    """CNY 5.4: relations stand in texts; the hint says whether an answer can be reached."""
    task = Task("q", "Who directed Kismet?", ("m.1",), ("Ann Lee",), ("m.3",))
    labeled = open_tasks("kg", movies(), {"test": [task]})
    (moved,) = labeled.tasks["test"]
    assert moved.hints["reachable"] is True
    (topic,) = Walk(labeled.graph).first(moved)
    assert labeled.graph.name(topic) == "Kismet"
    assert "film.film.directed_by ->" in labeled.graph.text(topic)
    episode = played(labeled, moved, Call("walk", {"node": topic}), Answer("ann lee"))
    assert "Ann Lee" in episode.turns[0].observations[0].names
    assert (right_class(episode), hits_substring(episode)) == (1.0, 1.0)
    lost = open_tasks("kg", movies(), {"test": [task]}, hops=0)
    assert lost.tasks["test"][0].hints["reachable"] is False


def test_no_prompt_needs_an_answer():
    """DESIGN law 3."""
    labeled = edge_tasks("e", GRAPH, EDGES, RELATIONS)
    (task,) = labeled.tasks["test"]
    sealed = SealedTask(task.id, task.question, task.start)
    prompt = Telling((), 5).prompt(Walk(labeled.graph), "walk")(sealed)
    assert prompt.user.count("[2]") == 1


def test_no_tasks_make_no_graph():
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="no tasks"):
        stance_tasks("s", [])


FILES = {
    "articles.jsonl": [
        json.dumps({"id": "A%20b", "title": "A b", "categories": ["Science.Ants"], "text": "ants"}),
        json.dumps({"id": "C", "title": "C", "categories": ["IT"], "text": "code"}),
    ],
    "links.tsv": ["A%20b\tC"],
    "relations.tsv": ["/has\thas", "/is\tis"],
    "train.tsv": ["x\t/has\ty"],
    "valid.tsv": ["y\t/is\tz"],
    "test.tsv": ["x\t/is\tz"],
    "train.jsonl": [json.dumps({**vars(STANCE), "graph": "(women; is a; citizens)"})],
    "dev.jsonl": [json.dumps(vars(STANCE))],
}
FREEBASE = ["mid\tname\twikidata_id\twikidata_label\twikidata_description\ta\tw"] + [
    f"{node}\t{node.upper()}\tQ\tl\tsome {node}\ta\tw" for node in "xyz"
]


@pytest.fixture
def folder(tmp_path):
    """Files of all sets but the entities."""
    for name, lines in FILES.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_published_sets_are_read(folder):
    """Wikispeedia, WN18RR, FB15k-237 and ExplaGraphs as published; only train's edges are links."""
    wiki = wikispeedia(folder)
    assert wiki.classes == ("IT", "Science")
    assert wiki.graph.text("0") == "A b: ants"
    assert wiki.graph.neighbors("0") == ("1",)

    (folder / "entities.tsv").write_text("".join(f"{n}\t{n.upper()}\tgloss\n" for n in "xyz"))
    words = wordnet(folder)
    assert words.graph.links == [("x", "y")]
    assert words.graph.text("x") == "X: gloss"
    assert [t.answers for t in words.tasks["test"]] == [("is",)]

    (folder / "entities.tsv").write_text("\n".join(FREEBASE) + "\n")
    assert freebase(folder).graph.text("x") == "X: some x"

    stances = explagraphs(folder)
    assert {s: len(own) for s, own in stances.tasks.items()} == {"train": 1, "test": 1}


def test_files_of_another_form_are_named(folder):
    """CONVENTIONS, "Errors": file, line and rule."""
    (folder / "entities.tsv").write_text("x\tX\n")
    with pytest.raises(DataError, match=r"entities\.tsv, line 1 has 2 columns; expected 3"):
        wordnet(folder)
    (folder / "dev.jsonl").write_text(json.dumps({**vars(STANCE), "label": "maybe"}))
    with pytest.raises(DataError, match="label 'maybe' is none of counter, support"):
        explagraphs(folder)
    (folder / "links.tsv").unlink()
    with pytest.raises(DataError, match="holds neither links"):
        wikispeedia(folder)


def test_webqsp_is_walked_on_each_questions_part(tmp_path):
    """CNY 5.4: triples and questions as published; an answer is named as the graph names it."""
    ns = "http://rdf.freebase.com/ns/"
    (tmp_path / "webqsp-fragment.nt").write_text(
        f"<{ns}m.1> <{ns}people.person.born> <{ns}m.2> .\n"
        f'<{ns}m.1> <{ns}type.object.name> "Ann"@en .\n'
        f'<{ns}m.2> <{ns}type.object.name> "Oslo"@en .\n'
    )
    row = {
        "id": "WebQTest-0",
        "question": "where was Ann born?",
        "start": ["m.1"],
        "answers": ["oslo, Norway"],
        "answer_ids": ["m.2"],
        "hints": {"split": "test"},
    }
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    labeled = webqsp(tmp_path)
    (task,) = labeled.tasks["test"]
    assert labeled.is_open
    assert (task.answers, task.hints["reachable"]) == (("Oslo",), True)
    assert webqsp(tmp_path, hops=0).tasks["test"][0].hints["reachable"] is False
    with pytest.raises(SettingsError, match="no tasks"):
        webqsp(tmp_path, splits=("train",))
