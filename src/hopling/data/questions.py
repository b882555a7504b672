"""Rows of published question sets, each turned into a task.

WebQSP, CWQ and GrailQA rows come as published, or in the form of our own reconstruction, which adds
valid SPARQL and says whether the gold query is exact on its graph; MetaQA rows in the latter only.
Hints that every reader fills where the row tells: `sparql` (SPARQL 1.1 with full IRIs), `path`,
`hops`, `qtype`, `pattern`, `exact`, `topics` (id to label).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hopling.episode import Task

Row = Mapping[str, Any]

FREEBASE = "http://rdf.freebase.com/ns/"

_PREFIXES = {
    "ns": FREEBASE,
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}
_DECLARATION = re.compile(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", re.IGNORECASE)
_TERM = re.compile(
    r"""(?P<kept>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<[^\s<>"{}|^`\\]*>|\#[^\n]*|[?$]\w+)
    |(?P<either>\bOR\b)
    |(?P<prefix>\b[A-Za-z][\w-]*|(?<![\w.:-])):(?P<local>\w(?:[\w.-]*[\w-])?)""",
    re.VERBOSE,
)
_TOPIC = re.compile(rf"<{re.escape(FREEBASE)}([mg]\.\w+)>")


class Unusable(Exception):
    """A question that the set itself leaves open, such as one without a gold answer."""


def reader(row: Row) -> Callable[[Row], Task] | None:
    """Return the function that reads rows like this one; None when no published set is known."""
    for keys, read in _READERS:
        if keys <= row.keys():
            return read
    return None


def full_iris(sparql: str) -> str:
    """Return the query as SPARQL 1.1 with every prefixed name written out.

    Freebase's names hold several dots, which strict parsers refuse after a prefix; `OR` and
    `xsd:datetime` are Virtuoso's own.

    >>> print(full_iris("ASK { ?x ns:people.person.gender ?y FILTER(?x = 1 OR ?x = 2) }"))
    ASK { ?x <http://rdf.freebase.com/ns/people.person.gender> ?y FILTER(?x = 1 || ?x = 2) }
    """
    prefixes = {**_PREFIXES, **dict(_DECLARATION.findall(sparql))}

    def written_out(term: re.Match[str]) -> str:
        if term["kept"]:
            return term[0]
        if term["either"]:
            return "||"
        if (term["prefix"] or "") not in prefixes:
            return term[0]
        local = "dateTime" if term["local"] == "datetime" else term["local"]
        return f"<{prefixes[term['prefix'] or '']}{local}>"

    return _TERM.sub(written_out, sparql)


def _webqsp_published(row: Row) -> Task:
    parses = [
        {
            "sparql": full_iris(parse["Sparql"]),
            "path": parse["InferentialChain"],
            "topic": parse["TopicEntityMid"],
            "label": parse["TopicEntityName"],
            **_answers(
                (a["AnswerArgument"], a["EntityName"] if a["AnswerType"] == "Entity" else None)
                for a in parse["Answers"]
            ),
        }
        for parse in row["Parses"]
    ]
    topics = {parse["topic"]: parse["label"] for parse in parses if parse["topic"]}
    return _webqsp(row["QuestionId"], row["RawQuestion"], topics, parses)


def _webqsp_checked(row: Row) -> Task:
    parses = [
        {
            "sparql": full_iris(parse["sparql"]),
            "path": parse["chain"],
            "topic": parse["topic_id"],
            "pattern": parse["pattern_class"],
            "exact": parse["check_mini"] == "exact",
            **_answers((a["id"] or a["value"], a["label"]) for a in parse["answers"]),
        }
        for parse in row["parses"]
    ]
    return _webqsp(row["id"], row["question"], row["topic_entities"], parses, row["split"])


def _webqsp(
    id: str,
    question: str,
    topics: Mapping[str, str],
    parses: Sequence[Row],
    split: str | None = None,
) -> Task:
    """The gold parse is the first exact one, else the first one with answers."""
    answered = [parse for parse in parses if parse["answers"]]
    if not answered:
        raise Unusable("no gold answer")
    gold = next((parse for parse in answered if parse.get("exact")), answered[0])
    first = [topic for topic in topics if topic == gold["topic"]]
    hints = {
        "sparql": gold["sparql"],
        "path": gold["path"],
        "hops": len(gold["path"]) if gold["path"] else None,
        "qtype": gold.get("pattern"),
        "pattern": gold.get("pattern"),
        "exact": gold.get("exact"),
        "parses": parses if len(parses) > 1 else None,
        "split": split,
    }
    start = dict.fromkeys([*first, *topics])
    return _task(id, question, {t: topics[t] for t in start}, gold, hints)


def _cwq_published(row: Row) -> Task:
    sparql = full_iris(row["sparql"])
    topics = dict.fromkeys(_TOPIC.findall(sparql))
    answers = _answers((a["answer_id"] or a["answer"], a["answer"]) for a in row.get("answers", ()))
    return _task(row["ID"], row["question"], topics, answers, {"sparql": sparql, **_cwq_hints(row)})


def _cwq_checked(row: Row) -> Task:
    answers = _answers((a["id"] or a["value"], a["label"]) for a in row["answers"])
    hints = {
        "sparql": full_iris(row["sparql"]),
        "pattern": row["pattern_class"],
        "exact": row["check_mini"] == "exact",
        "split": row["split"],
        **_cwq_hints(row),
    }
    return _task(row["id"], row["question"], row["topic_entities"], answers, hints)


def _cwq_hints(row: Row) -> dict[str, Any]:
    parent = row.get("webqsp_id") or row.get("webqsp_ID")
    return {"qtype": row["compositionality_type"], "webqsp_id": parent}


def _grailqa(row: Row) -> Task:
    nodes = row["graph_query"]["nodes"]
    named = {n["id"]: n["friendly_name"] for n in nodes if n["node_type"] == "entity"}
    topics = row.get("topic_entity", named)
    answers = _answers((a["answer_argument"], a.get("entity_name")) for a in row["answer"])
    hints = {
        "sparql": full_iris(row.get("sparql") or row["sparql_query"]),
        "hops": len(row["graph_query"]["edges"]),
        "qtype": row.get("level"),
        "pattern": row.get("pattern_class"),
        "function": row["function"],
        "s_expression": row["s_expression"],
        "exact": row["check_mini"] == "exact" if "check_mini" in row else None,
    }
    return _task(str(row["qid"]), row["question"], topics, answers, hints)


def _metaqa(row: Row) -> Task:
    """MetaQA knows names only, so a name is its own id."""
    hints = {
        "path": row["path"],
        "hops": row["hops"],
        "qtype": row["qtype"],
        "exact": row["check"].startswith("exact"),
        "split": row["split"],
    }
    answers = _answers((name, name) for name in row["answers"])
    return _task(row["id"], row["question"], {row["topic"]: row["topic"]}, answers, hints)


def _answers(pairs: Any) -> dict[str, list[str]]:
    """Return names and ids side by side; a value without a node is its own id, and its own name."""
    named: dict[str, str] = {}
    for id, name in pairs:
        named.setdefault(str(id), str(name or id))
    return {"answers": list(named.values()), "answer_ids": list(named)}


def _task(
    id: str,
    question: str,
    topics: Mapping[str, str | None],
    gold: Mapping[str, Sequence[str]],
    hints: Mapping[str, Any],
) -> Task:
    if not gold["answers"]:
        raise Unusable("no gold answer")
    if not topics:
        raise Unusable("no topic entity")
    told = {name: value for name, value in hints.items() if value is not None}
    labels = {topic: label for topic, label in topics.items() if label}
    return Task(
        id,
        question,
        start=tuple(topics),
        answers=tuple(gold["answers"]),
        answer_ids=tuple(gold["answer_ids"]),
        hints={**told, "topics": labels},
    )


_READERS: tuple[tuple[set[str], Callable[[Row], Task]], ...] = (
    ({"QuestionId", "Parses"}, _webqsp_published),
    ({"id", "parses", "topic_entities"}, _webqsp_checked),
    ({"ID", "compositionality_type"}, _cwq_published),
    ({"id", "compositionality_type", "topic_entities"}, _cwq_checked),
    ({"qid", "graph_query"}, _grailqa),
    ({"topic", "qtype", "path", "check"}, _metaqa),
)
