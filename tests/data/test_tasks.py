"""Task files keep every task, name every bad line, and published sets read as tasks."""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopling.data.questions import full_iris
from hopling.data.tasks import audit_tasks, read_tasks, relabeled, write_tasks
from hopling.episode import Task
from hopling.errors import DataError

SHARED = Path(
    os.environ.get("HOPLING_SHARED_DATA") or Path(__file__).parents[3] / "shared" / "data"
)
NS = "http://rdf.freebase.com/ns/"
GOOD = {"id": "a", "question": "Who?", "start": ["m.1"], "answers": ["Zo\u00eb"], "hops": 2}

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
texts = st.lists(text, max_size=3).map(tuple)


def write(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@settings(deadline=None)
@given(
    fields=st.fixed_dictionaries(
        {
            "question": text,
            "start": texts,
            "answers": st.lists(text, min_size=1, max_size=3).map(tuple),
            "evidence": texts,
            "hints": st.dictionaries(text, text | st.integers() | st.booleans(), max_size=3),
        }
    ),
    suffix=st.sampled_from(["jsonl", "jsonl.gz"]),
)
def test_written_tasks_come_back_whole(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], suffix: str
) -> None:
    """Ours: writing then reading is the identity, compressed or not."""
    path = tmp_path_factory.mktemp("tasks") / f"tasks.{suffix}"
    tasks = [Task("1", **fields), Task("2", **fields)]
    write_tasks(path, tasks)
    assert read_tasks(path) == tasks


def test_unknown_fields_become_hints(tmp_path: Path) -> None:
    """The issue: hints are for teachers; a file may carry any."""
    (task,) = read_tasks(write(tmp_path / "tasks.jsonl", {**GOOD, "hints": {"path": ["^r"]}}))
    assert task.hints == {"path": ["^r"], "hops": 2}
    assert task.answers == ("Zo\u00eb",)
    assert task.evidence == ()


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ('{"id": "b", ', "a task is a JSON object"),
        ("[1, 2]", "a task is a JSON object"),
        ({**GOOD, "id": "b", "answers": []}, "a task without a gold answer cannot be scored"),
        ({**GOOD, "id": "b", "answers": [" "]}, "answers is [' ']; expected a list of texts"),
        ({**GOOD, "id": "b", "answers": "Rome"}, "answers is 'Rome'; expected a list of texts"),
        ({**GOOD, "id": "b", "start": [1]}, "start is [1]; expected a list of texts"),
        ({**GOOD, "id": "b", "question": ""}, "question is ''; expected some text"),
        ({**GOOD, "id": "b", "hints": 3}, "hints is 3; expected an object"),
        ({**GOOD, "id": "b", "answer_ids": ["x", "y"]}, "answer_ids has another length"),
        ({"question": "Who?", "answers": ["x"]}, "field 'id' is missing"),
        (GOOD, "id 'a' is taken by an earlier task"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_kept(tmp_path: Path, row: Any, rule: str) -> None:
    """BUGS B10, B32 and the issue: file, line and rule are named and nothing is lost."""
    path = write(tmp_path / "tasks.jsonl", GOOD, row, {**GOOD, "id": "c"})
    with pytest.raises(DataError) as caught:
        read_tasks(path)
    assert "tasks.jsonl has 1 bad lines beside 2 good tasks" in str(caught.value)
    assert "line 2" in str(caught.value)
    assert rule in str(caught.value)
    audit = audit_tasks(path)
    assert [task.id for task in audit.tasks] == ["a", "c"]
    assert [bad.place for bad in audit.bad] == ["line 2"]


def test_a_byte_order_mark_and_blank_lines_are_no_tasks(tmp_path: Path) -> None:
    """BUGS B11: UTF-8 always, a BOM tolerated."""
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    assert [task.id for task in read_tasks(path)] == ["a"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        ('{"id": "\u00e9"}'.encode("latin-1"), "is not UTF-8 at byte 8"),
        (gzip.compress(b"x" * 999)[:-20], "is no whole gzip file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, data: bytes, message: str) -> None:
    """CONVENTIONS: what was found and what to do."""
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_tasks(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_tasks(tmp_path / "none.jsonl")


def test_prefixed_names_are_written_out_but_not_inside_strings_and_iris() -> None:
    """DATA.md, notes on pyoxigraph: it refuses prefixed names with two dots."""
    query = (
        "PREFIX ns: <http://rdf.freebase.com/ns/>\n#MANUAL ns:a.b.c\nSELECT ?x {\n"
        'ns:m.01 ns:a.b.c ?x . ?x :d.e.f "ns:g OR \'h" .\n'
        'FILTER(?x != <http://x/ns:a> OR xsd:datetime(?x) < "2015"^^xsd:dateTime || ?ns:x = 1) }'
    )
    assert full_iris(query) == (
        "PREFIX ns: <http://rdf.freebase.com/ns/>\n#MANUAL ns:a.b.c\nSELECT ?x {\n"
        f'<{NS}m.01> <{NS}a.b.c> ?x . ?x :d.e.f "ns:g OR \'h" .\n'
        "FILTER(?x != <http://x/ns:a> || <http://www.w3.org/2001/XMLSchema#dateTime>(?x) < "
        '"2015"^^<http://www.w3.org/2001/XMLSchema#dateTime> || ?ns:x = 1) }'
    )
    assert full_iris(full_iris(query)) == full_iris(query)


def webqsp_parse(mid: str, *answers: tuple[str, str | None]) -> dict[str, Any]:
    return {
        "Sparql": f"PREFIX ns: <{NS}>\nSELECT ?x {{ ns:{mid} ns:a.b.c ?x . }}",
        "InferentialChain": ["a.b.c"],
        "TopicEntityMid": mid,
        "TopicEntityName": mid.upper(),
        "Answers": [
            {
                "AnswerType": "Entity" if id.startswith("m.") else "Value",
                "AnswerArgument": id,
                "EntityName": name,
            }
            for id, name in answers
        ],
    }


def test_published_webqsp_takes_the_first_parse_with_answers(tmp_path: Path) -> None:
    """USERS 4.3; DATA.md: 37 questions have no gold answer."""
    parses = [
        webqsp_parse("m.1"),
        webqsp_parse("m.2", ("m.7", "Seven"), ("m.8", None), ("1971-10-13", None)),
        webqsp_parse("m.1", ("m.9", "Nine")),
    ]
    rows = [
        {"QuestionId": "q", "RawQuestion": "Who?", "Parses": parses},
        {"QuestionId": "none", "RawQuestion": "Who?", "Parses": parses[:1]},
    ]
    path = write(tmp_path / "WebQSP.json", json.dumps({"Questions": rows}, indent=2))
    audit = audit_tasks(path)
    (task,) = audit.tasks
    assert audit.dropped == {"no gold answer": 1}
    assert task.start == ("m.2", "m.1")
    assert task.answers == ("Seven", "m.8", "1971-10-13")
    assert task.answer_ids == ("m.7", "m.8", "1971-10-13")
    assert task.hints["sparql"].endswith(f"SELECT ?x {{ <{NS}m.2> <{NS}a.b.c> ?x . }}")
    assert task.hints["topics"] == {"m.2": "M.2", "m.1": "M.1"}
    assert [parse["answers"] for parse in task.hints["parses"]] == [
        [],
        list(task.answers),
        ["Nine"],
    ]


def test_checked_webqsp_takes_the_first_exact_parse(tmp_path: Path) -> None:
    """Ours: gold is the parse that the graph answers exactly, if there is one."""
    parse: dict[str, Any] = {
        "chain": ["a.b"],
        "topic_id": "m.1",
        "sparql": "ASK {}",
        "pattern_class": "plain",
    }
    answers = [{"id": "m.7", "value": None, "label": "Seven"}]
    dates = [{"id": None, "value": "1971", "label": "1971"}]
    row = {
        "id": "q",
        "question": "Who?",
        "split": "test",
        "topic_entities": {"m.1": "One"},
        "parses": [
            {**parse, "answers": answers, "check_mini": "superset"},
            {**parse, "answers": dates, "check_mini": "exact"},
        ],
    }
    (task,) = read_tasks(write(tmp_path / "questions.jsonl", row))
    assert task.answers == task.answer_ids == ("1971",)
    assert task.hints["exact"] is True
    assert (task.hints["hops"], task.hints["split"]) == (1, "test")


def test_published_cwq_takes_its_topics_from_the_query(tmp_path: Path) -> None:
    """USERS 4.3: published rows name no topic entities."""
    row = {
        "ID": "q",
        "webqsp_ID": "w",
        "question": "Who?",
        "compositionality_type": "conjunction",
        "sparql": "SELECT ?x { ?x ns:a.b.c ns:m.02 . ns:m.01 ns:d.e.f ?x }",
        "answers": [
            {"answer_id": "m.7", "answer": "Seven", "aliases": []},
            {"answer_id": "m.8", "answer": None, "aliases": []},
        ],
    }
    path = write(tmp_path / "cwq.json", json.dumps([row, {**row, "ID": "r", "answers": []}]))
    audit = audit_tasks(path)
    (task,) = audit.tasks
    assert task.start == ("m.02", "m.01")
    assert task.answers == ("Seven", "m.8")
    assert (task.hints["qtype"], task.hints["webqsp_id"]) == ("conjunction", "w")
    assert audit.dropped == {"no gold answer": 1}


def test_grailqa_drops_questions_without_a_topic_entity(tmp_path: Path) -> None:
    """SoG-R1 5.1: class-level questions leave entity-seeded search no starting point."""
    entity = {"id": "m.1", "node_type": "entity", "friendly_name": "One"}
    klass = {"id": "law.court", "node_type": "class", "friendly_name": "Court"}
    row = {
        "qid": 7,
        "question": "Which?",
        "answer": [{"answer_type": "Entity", "answer_argument": "m.9", "entity_name": "Nine"}],
        "function": "none",
        "level": "i.i.d.",
        "s_expression": "(AND law.court)",
        "graph_query": {"nodes": [klass, entity], "edges": [{}, {}]},
        "sparql_query": f"PREFIX : <{NS}> \nSELECT ?x {{ ?x :law.court.of :m.1 }}",
    }
    class_level = {**row, "qid": 8, "graph_query": {"nodes": [klass], "edges": []}}
    audit = audit_tasks(write(tmp_path / "grailqa.json", json.dumps([row, class_level])))
    (task,) = audit.tasks
    assert (task.id, task.start, task.answers) == ("7", ("m.1",), ("Nine",))
    assert f"?x <{NS}law.court.of> <{NS}m.1>" in task.hints["sparql"]
    assert audit.dropped == {"no topic entity": 1}


def test_a_published_row_of_another_form_is_named_by_its_number(tmp_path: Path) -> None:
    """The issue: a bad line is named by file, line and rule."""
    good = {"QuestionId": "q", "RawQuestion": "?", "Parses": [webqsp_parse("m.1", ("m.2", "Two"))]}
    path = write(
        tmp_path / "WebQSP.json", json.dumps([good, {"QuestionId": "r"}, {**good, "Parses": 3}])
    )
    audit = audit_tasks(path)
    assert [(bad.place, bad.rule[:23]) for bad in audit.bad] == [
        ("record 2", "field 'Parses' is missi"),
        ("record 3", "the record has another "),
    ]


class Labels:
    """A graph that knows labels only."""

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        return [{"m.1": "Romania"}.get(node) for node in nodes]


def test_answers_take_the_names_that_the_graph_prints() -> None:
    """PAPERS 1.1: gold is what the tool prints, or the id; DATA.md: a MID can carry two labels."""
    tasks = [
        Task("a", "?", answers=("Kingdom of Romania", "x"), answer_ids=("m.1", "m.2")),
        Task("b", "?", answers=("Rome",)),
    ]
    named = relabeled(tasks, Labels())
    assert [task.answers for task in named] == [("Romania", "m.2"), ("Rome",)]


REAL = [
    (path, size)
    for name, size in [
        ("webqsp/WebQSP.train.jsonl.gz", 3071),
        ("webqsp/WebQSP.test.jsonl.gz", 1628),
        ("webqsp-fragment/questions.jsonl.gz", 4699),
        ("freebase-mini/cwq_questions.jsonl.gz", 1732),
        ("freebase-mini/grailqa_dev1000_questions.jsonl.gz", 988),
        ("metaqa/questions-3hop-dev.jsonl.gz", 14274),
    ]
    if (path := SHARED / name).exists()
]


@pytest.mark.parametrize(("path", "size"), REAL)
def test_real_question_sets_read_whole_and_their_queries_parse(path: Path, size: int) -> None:
    """DATA.md: counts of questions with gold and topic; two of Freebase's queries are no SPARQL."""
    audit = audit_tasks(path)
    assert not audit.bad
    assert len(audit.tasks) == size
    assert all(len(task.answers) == len(task.answer_ids) for task in audit.tasks)
    store, refused = pyoxigraph.Store(), 0
    for task in audit.tasks[::10]:
        try:
            store.query(task.hints.get("sparql", "ASK {}"))
        except SyntaxError:
            refused += 1
    assert refused <= 1
