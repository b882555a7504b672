from hopling.data.drafts import Draft, Rejected, broken_rule
from hopling.data.paths import Path, sample_paths
from hopling.data.templates import Templates
from hopling.graphs.base import Document
from hopling.graphs.documents import DocumentGraph, Extraction, Triple
from small_corpus import corpus

GRAPH = corpus()


def test_triples_lead_from_the_question_to_the_answer():
    """GTA-RAG 3.4: each query is what a reader knows by then; the template is ours."""
    path = Path(("Kismet", "Ann Lee", "Oslo"), (("Ann Lee",), ("Oslo",)))
    (draft,) = Templates(GRAPH)([path])
    assert draft == Draft(
        path.id,
        "Kismet was directed by X, and X was born in Y, and Y is the capital of Z. What is Z?",
        ("Norway",),
        path.documents,
        ("Kismet was directed by", "Ann Lee was born in", "Oslo is the capital of"),
        (
            "",
            "Kismet was directed by Ann Lee.",
            "Ann Lee was born in Oslo.",
            "Oslo is the capital of Norway.",
        ),
    )


def test_a_triple_may_be_read_from_its_end():
    """Ours."""
    path = Path(("Oslo", "Ann Lee"), (("Oslo",),))
    (draft,) = Templates(GRAPH)([path])
    assert isinstance(draft, Draft)
    assert draft.question == "X is the capital of Norway, and Y was born in X. What is Y?"
    assert draft.queries == ("is the capital of Norway", "was born in Oslo")
    assert draft.answers == ("Ann Lee",)
    assert isinstance(Templates(GRAPH, backward=False)([path])[0], Rejected)


def test_a_question_with_several_answers_is_not_asked():
    """Ours: Bo Dale was taught by two."""
    two = (Triple("Bo Dale", "was taught by", "Cy Poe"), Triple("Bo Dale", "was taught by", "Di"))
    extractions = [
        Extraction("Low", triples=(Triple("Low", "was directed by", "Bo Dale"),)),
        Extraction("Bo Dale", triples=two),
    ]
    documents = [Document("Low", "Low", "Low: Bo Dale"), Document("Bo Dale", "", "Cy Poe, Di")]
    graph = DocumentGraph.build(documents, extractions)
    (draft,) = Templates(graph)([Path(("Low", "Bo Dale"), (("Bo Dale",),))])
    assert draft == Rejected("a triple has several answers")


def test_documents_that_share_an_entity_without_triples_give_no_question():
    """Ours."""
    documents = [Document("a", "A", "Rome"), Document("b", "B", "Rome")]
    graph = DocumentGraph.build(documents, [Extraction("a", ("Rome",)), Extraction("b", ("Rome",))])
    (draft,) = Templates(graph)([Path(("a", "b"), (("Rome",),))])
    assert draft == Rejected("no triples lead from document to document")


def test_a_triple_that_says_nothing_is_not_asked():
    """Ours: what spaCy's extractor joins for lack of a verb."""
    said = {"f": ("Kismet", "mentioned with", "Ann Lee"), "p": ("Ann Lee", "was born in", "Oslo")}
    documents = [Document(id, triple[0], " ".join(triple)) for id, triple in said.items()]
    extractions = [Extraction(id, triples=(Triple(*triple),)) for id, triple in said.items()]
    graph = DocumentGraph.build(documents, extractions)
    path = Path(("f", "p"), (("Ann Lee",),))
    assert Templates(graph)([path]) == [Rejected("no triples lead from document to document")]
    assert isinstance(Templates(graph, vague=())([path])[0], Draft)


def test_two_spellings_of_one_thing_join_documents():
    """GTA-RAG 3.2: synonymy edges; each document is asked for in the form that was read before."""
    extractions = [
        Extraction("f", triples=(Triple("Kismet", "was directed by", "Annabelle Leeman"),)),
        Extraction("p", triples=(Triple("Annabelle Leemann", "was born in", "Oslo"),)),
    ]
    documents = [
        Document("f", "Kismet", "Kismet was directed by Annabelle Leeman."),
        Document("p", "", "Annabelle Leemann was born in Oslo."),
    ]
    graph = DocumentGraph.build(documents, extractions)
    link = ("Annabelle Leeman", "Annabelle Leemann")
    (draft,) = Templates(graph)([Path(("f", "p"), (link,))])
    assert isinstance(draft, Draft)
    assert draft.queries == ("Kismet was directed by", "Annabelle Leeman was born in")
    assert draft.answers == ("Oslo",)


def test_what_is_written_keeps_the_rules_and_is_the_same_again():
    """Ours."""
    paths = [path for path in sample_paths(GRAPH, (2, 3), num=200, seed=0) if path]
    drafts = Templates(GRAPH)(paths)
    written = [draft for draft in drafts if isinstance(draft, Draft)]
    assert len(written) > 4
    assert [broken_rule(draft, GRAPH.document) for draft in written] == [None] * len(written)
    assert Templates(GRAPH)(paths) == drafts
