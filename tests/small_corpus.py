"""A corpus of a few pages with their triples, for tests of questions over documents."""

from hopling.dialects.tags import Tags
from hopling.environment import Environment
from hopling.graphs.base import Document, Retriever
from hopling.graphs.documents import DocumentGraph, Extraction, Triple
from hopling.tools import Retrieve

FACTS = {
    "Kismet": [("was directed by", "Ann Lee")],
    "Ann Lee": [("was born in", "Oslo")],
    "Oslo": [("is the capital of", "Norway")],
    "Low": [("was directed by", "Bo Dale")],
    "Bo Dale": [("was born in", "Rome"), ("was taught by", "Cy Poe"), ("was taught by", "Di Fox")],
    "Rome": [("is the capital of", "Italy")],
}
DIALECT = Tags({"search": "query"}, observation="info")


def corpus() -> DocumentGraph:
    """Return the graph of two films, their directors and the cities of these."""
    documents = [
        Document(title, title, " ".join(f"{title} {relation} {end}." for relation, end in facts))
        for title, facts in FACTS.items()
    ]
    extractions = [
        Extraction(title, triples=tuple(Triple(title, *fact) for fact in facts))
        for title, facts in FACTS.items()
    ]
    return DocumentGraph.build(documents, extractions)


def world(retriever: Retriever, *, max_docs: int = 6, max_turns: int = 5) -> Environment:
    """Return the environment in which a policy searches the corpus."""
    tools = (Retrieve(retriever, max_docs),)
    return Environment(lambda task: task.question, tools, DIALECT, max_turns)
