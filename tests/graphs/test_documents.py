"""A graph of documents: what it joins, what it finds, how it is kept, and its edges."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopling.errors import SettingsError
from hopling.graphs import documents as module
from hopling.graphs.base import Document
from hopling.graphs.document_store import Linking
from hopling.graphs.documents import DocumentGraph, Extraction, Retrieval, Triple, fused
from hopling.graphs.ppr import Seeds, push

PAGES = {
    "Kismet": "Kismet is a film. It was directed by Ann Lee.",
    "Ann Lee": "Ann Lee, a director, was born in Oslo.",
    "Oslo": "Oslo lies on a fjord. It is the capital of Norway.",
    "Rome": "Rome lies on the Tiber.",
}
FACTS = {
    "Kismet": [Triple("Kismet", "was directed by", "Ann Lee")],
    "Ann Lee": [Triple("ann lee", "was born in", "Oslo")],
    "Oslo": [Triple("Oslo", "is the capital of", "Norway")],
}


class Letters:
    """An embedder that counts letters, and the texts that it is given."""

    def __init__(self, dimension: int = 26, name: str = "letters") -> None:
        self.dimension, self.name = dimension, name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return how often each letter is in each text."""
        self.asked += texts
        rows = np.zeros((len(texts), self.dimension))
        for row, text in zip(rows, texts, strict=True):
            for letter in text.casefold():
                if letter.isascii() and letter.isalpha():
                    row[(ord(letter) - 97) % self.dimension] += 1
        return rows


def pages_of(*names: str) -> list[Document]:
    """Return pages as documents, all of them without names."""
    return [Document(name, name, PAGES[name]) for name in names or PAGES]


def extractions(*names: str) -> list[Extraction]:
    """Return what was read out of pages, all of them without names."""
    return [Extraction(n, triples=tuple(FACTS[n])) for n in names or PAGES if n in FACTS]


def graph(**options) -> DocumentGraph:
    """Return the graph of all pages."""
    return DocumentGraph.build(pages_of(), extractions(), **options)


def ids(found: Sequence[Sequence[Document]]) -> list[list[str]]:
    """Return the documents' ids."""
    return [[document.id for document in one] for one in found]


def test_entities_documents_and_triples_are_joined() -> None:
    """GTA-RAG Eq. 4 and 5: entity-document edges and one relation edge for each triple."""
    pages = graph()
    assert pages.entities_of("Ann Lee") == ["Ann Lee", "Oslo"]
    assert pages.documents_of("Ann Lee") == ["Kismet", "Ann Lee"]
    assert pages.related("Oslo") == ["Ann Lee", "Norway"]
    assert pages.triples_of("Ann Lee") == [Triple("Ann Lee", "was born in", "Oslo")]
    assert pages.entities_of("Rome") == pages.triples_of("Rome") == []
    assert pages.document("Oslo").text == PAGES["Oslo"]


def test_statistics_count_as_table_5_does() -> None:
    """GTA-RAG Table 5: nodes, edges of each kind, mean entities of a document."""
    counts = graph().statistics
    assert (counts.documents, counts.entities, counts.document_entity_edges) == (4, 4, 6)
    assert (counts.relation_edges, counts.synonymy_edges, counts.triples) == (3, 0, 3)
    assert counts.average_document_degree == 1.5
    assert (counts.without_entities, counts.merged, counts.failed) == (1, 1, 0)


def test_two_walks_from_a_triple_reach_the_next_document() -> None:
    """GTA-RAG Eq. 6-8: "Oslo" shares no word with the query, only an entity with a document."""
    query = "Where was the one who directed Kismet from?"
    alone = replace(graph(), retrieval=Retrieval(num_graph=0, num_passages=3))
    walked = replace(graph(), retrieval=Retrieval(num_graph=3, num_passages=0))
    assert ids(alone.retrieve([query])) == [["Kismet"]]
    assert ids(walked.retrieve([query])) == [["Kismet", "Ann Lee", "Oslo"]]


def test_the_scores_of_a_walk_by_hand() -> None:
    """GTA-RAG Eq. 7: a - A - d with A the seed, restart 1/2: r_A = 2/3, r_a = r_d = 1/6."""
    pair = DocumentGraph.build(
        [Document("a", "", "x"), Document("d", "", "x")],
        [Extraction("a", ("Ann",)), Extraction("d", ("Ann",))],
    )
    (found,) = push(pair.content.adjacency, [Seeds(np.asarray([2]), np.ones(1))], 3, restart=0.5)
    assert found.nodes.tolist() == [2, 0, 1]
    assert found.values == pytest.approx([2 / 3, 1 / 6, 1 / 6], abs=1e-4)


def test_both_parts_are_united_and_each_document_comes_once() -> None:
    """GTA-RAG Eq. 9; the order is by reciprocal ranks, as in RouteRAG."""
    (found,) = ids(graph().retrieve(["directed Kismet Tiber"]))
    assert sorted(found) == sorted(set(found))
    assert {"Kismet", "Rome", "Ann Lee"} <= {*found}
    assert fused([[1, 2], [3, 2]]) == [2, 1, 3]


def test_one_call_for_many_queries_gives_what_single_calls_give() -> None:
    """Issue 5: one batched call serves many episodes."""
    queries = ["Kismet", "", "Tiber Rome", "capital of Norway", "zzz", "Kismet"]
    for pages in (graph(), graph(embedder=Letters())):
        together = pages.retrieve(queries)
        assert together == [pages.retrieve([query])[0] for query in queries]
        assert pages.retrieve([]) == []


def test_an_unknown_question_finds_nothing_by_words() -> None:
    """Issue 5, "Bad input": a question whose entities are unknown; BUGS B14: no NaN."""
    assert graph().retrieve(["zzz", "", " \n", "the of"]) == [[], [], [], []]


def test_a_graph_without_entities_still_finds_text() -> None:
    """BUGS B14 (2), (3): a usable index, with the graph empty."""
    for pages in (DocumentGraph.build(pages_of()), DocumentGraph.build(pages_of(), [])):
        assert ids(pages.retrieve(["Tiber"])) == [["Rome"]]
        assert pages.statistics.without_entities == 4
        assert pages.statistics.average_document_degree == 0


def test_a_document_without_words_hurts_nobody() -> None:
    """BUGS B14 (2): one document "..."."""
    pages = DocumentGraph.build([Document("a", "", "...")])
    assert pages.retrieve(["anything", "..."]) == [[], []]


def test_equal_texts_rank_in_the_order_given() -> None:
    """BUGS B14 (4): equal scores, equal ranks, no NaN."""
    same = [Document(name, "", "a cat sat") for name in "bca"]
    assert ids(DocumentGraph.build(same).retrieve(["cat"])) == [["b", "c", "a"]]


def test_documents_that_hold_tags_or_other_scripts_come_back_as_they_are() -> None:
    """BUGS B21; issue 5, "Bad input": tags inside, non-Latin text."""
    texts = {
        "t": "<answer>Paris</answer></info>",
        "j": "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd",
    }
    pages = DocumentGraph.build([Document(name, "", text) for name, text in texts.items()])
    assert pages.retrieve(["Paris"])[0][0].text == texts["t"]
    assert ids(pages.retrieve(["\u65e5\u672c\u306e\u9996\u90fd\u306f\uff1f"])) == [["j"]]


def test_a_huge_document_is_one_document() -> None:
    """Issue 5, "Bad input"."""
    huge = Document("h", "", "word " * 200_000 + "needle")
    assert ids(DocumentGraph.build([huge, *pages_of()]).retrieve(["needle"])) == [["h"]]


def test_names_are_found_in_any_form_of_unicode_and_case() -> None:
    """BUGS B19: NFD and upper case find what is stored in NFC, and the exact name does."""
    name = "Zo\u00eb / S\u00e3o-Lu\u00eds (v2)"
    pages = DocumentGraph.build([Document("d", "", "x")], [Extraction("d", (name,))])
    nfd = "Zoe\u0308 / Sa\u0303o-Lui\u0301s (v2)"
    for asked in (name, nfd, name.upper()):
        assert [entity.id for entity in pages.find(asked)] == [name]
    assert pages.documents_of(nfd) == ["d"]
    assert pages.find("Zorro") == []


def test_synonyms_are_joined_above_the_threshold_and_short_names_never() -> None:
    """GTA-RAG 3.2; HippoRAG 2: names of more than two letters or digits."""
    names = ("Maria Michela Mari", "Maria Michela Maria", "Ol", "Ol.", "Quite Other")
    pages = DocumentGraph.build([Document("d", "", "x")], [Extraction("d", names)])
    assert pages.related(names[0]) == [names[1]]
    assert pages.related("Quite Other") == []
    strict = DocumentGraph.build(
        [Document("d", "", "x")], [Extraction("d", names)], linking=Linking(synonymy=0.99)
    )
    assert strict.statistics.synonymy_edges == 0


@pytest.mark.parametrize("embedder", [None, Letters()])
def test_adding_and_removing_gives_the_graph_that_is_built_at_once(embedder) -> None:
    """Issue 5: incremental add and remove."""
    whole = graph(embedder=embedder)
    part = DocumentGraph.build(pages_of("Kismet", "Rome"), extractions("Kismet"), embedder=embedder)
    grown = part.add(pages_of("Ann Lee", "Oslo"), extractions("Ann Lee", "Oslo"))
    assert grown.statistics == whole.statistics
    queries = ["Kismet", "capital of Norway", "Tiber"]
    asked = lambda pages: sorted(map(sorted, ids(pages.retrieve(queries))))  # noqa: E731
    assert asked(grown) == asked(whole)
    assert grown.remove(["Ann Lee", "Oslo"]).statistics == part.statistics


def test_only_new_texts_are_embedded_again() -> None:
    """Issue 5: an incremental add costs what is new."""
    embedder = Letters()
    part = DocumentGraph.build(pages_of("Kismet"), extractions("Kismet"), embedder=embedder)
    embedder.asked.clear()
    part.add(pages_of("Rome"))
    assert embedder.asked == [f"Rome\n{PAGES['Rome']}"]
    embedder.asked.clear()
    part.add([Document("Kismet", "Kismet", "another text")])
    assert embedder.asked == ["Kismet\nanother text"]


def test_a_known_id_takes_a_documents_place() -> None:
    """BUGS B15, "duplicate raises": the same thing twice is there once."""
    pages = graph().add(pages_of("Rome"))
    assert pages.statistics == graph().statistics
    changed = pages.add([Document("Kismet", "Kismet", "A play.")])
    assert changed.document("Kismet").text == "A play."
    assert changed.entities_of("Kismet") == []


def test_a_saved_graph_opens_to_the_same_answers(tmp_path: Path) -> None:
    """BUGS B17: what is written is whole, and a graph that is written again replaces it."""
    queries = ["Kismet", "capital of Norway", "Tiber", ""]
    for embedder in (None, Letters()):
        pages = graph(embedder=embedder, aliases={"Oslo": "Christiania"}, extractor="mine")
        pages.save(tmp_path / "g")
        again = DocumentGraph.open(tmp_path / "g", embedder=embedder)
        assert again.retrieve(queries) == pages.retrieve(queries)
        assert again.statistics == pages.statistics
        assert again.entities_of("Oslo") == pages.entities_of("Oslo") == ["Christiania", "Norway"]
        assert again.add(pages_of("Rome")).statistics == pages.statistics
        assert [*tmp_path.iterdir()] == [tmp_path / "g"]


def test_another_embedder_or_dimension_is_refused(tmp_path: Path) -> None:
    """BUGS B18: the index stores the embedder's name; a 16-dim one does not open an 8-dim index."""
    graph(embedder=Letters(8)).save(tmp_path / "g")
    for other in (Letters(16), Letters(8, "others"), None):
        with pytest.raises(SettingsError, match="embedder 'letters' of dimension 8"):
            DocumentGraph.open(tmp_path / "g", embedder=other)


def test_a_damaged_folder_is_refused_by_name(tmp_path: Path) -> None:
    """BUGS B17: a cut file, another version, another thing."""
    folder = tmp_path / "g"
    with pytest.raises(SettingsError, match=r"no manifest\.json"):
        DocumentGraph.open(folder)
    graph().save(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    whole = (folder / "documents.jsonl").read_bytes()
    (folder / "documents.jsonl").write_bytes(whole[:-5])
    with pytest.raises(SettingsError, match=r"documents\.jsonl has .* cut short"):
        DocumentGraph.open(folder)
    (folder / "documents.jsonl").write_bytes(whole)
    (folder / "mentions.npy").unlink()
    with pytest.raises(SettingsError, match=r"mentions\.npy has 0 bytes"):
        DocumentGraph.open(folder)
    for change, rule in (({"version": 99}, "version 99"), ({"format": "x"}, "another's")):
        (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
        with pytest.raises(SettingsError, match=rule):
            DocumentGraph.open(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(SettingsError, match="damaged"):
        DocumentGraph.open(folder)


def test_nothing_to_search_and_unknown_names_are_refused() -> None:
    """BUGS B14 (1); CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="no documents"):
        DocumentGraph.build([])
    with pytest.raises(SettingsError, match="'a'"):
        DocumentGraph.build([Document("a", "", "x"), Document("a", "", "y")])
    with pytest.raises(SettingsError, match="no such document"):
        DocumentGraph.build(pages_of(), [Extraction("Nope")])
    with pytest.raises(SettingsError, match="no documents"):
        graph().remove([*PAGES])
    with pytest.raises(SettingsError, match="Did you mean 'Kismet'"):
        graph().remove(["Kismt"])
    for call in (graph().document, graph().entities_of, graph().documents_of, graph().related):
        with pytest.raises(SettingsError, match="'Atlantis'"):
            call("Atlantis")
    for retrieval in ({"num_graph": 0, "num_passages": 0}, {"num_triples": -1}):
        with pytest.raises(SettingsError):
            Retrieval(**retrieval)


@pytest.mark.parametrize(("rarity", "ratio"), [(0.0, 1.0), (1.0, 3.0)])
def test_a_rare_entity_counts_more_as_a_seed(
    rarity: float, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HippoRAG 2: a seed's weight is divided by the documents that name it; Eq. 6 does not."""
    seen = []
    monkeypatch.setattr(
        module, "rank", lambda graph, seeds, *rest, **more: seen.extend(seeds) or []
    )
    triple = Triple("Rare", "joins", "Common")
    read = [Extraction("Kismet", ("Common",)), Extraction("Oslo", ("Common",))]
    pages = DocumentGraph.build(pages_of(), [*read, Extraction("Rome", triples=(triple,))])
    only_graph = Retrieval(num_passages=0, rarity=rarity)
    replace(pages, retrieval=only_graph).retrieve(["joins"])
    weights = {pages.content.facts.entities[n - 4].id: w for n, w in zip(*seen[0], strict=True)}
    assert weights["Rare"] / weights["Common"] == pytest.approx(ratio)
