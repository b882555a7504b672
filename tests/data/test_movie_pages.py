from functools import cache

from hopling.data.movie_pages import movie_pages


@cache
def _pages():
    return movie_pages(num_films=60, seed=0)


def test_pages_are_the_same_again_and_tell_what_their_triples_say():
    """Ours: a corpus that every clone has."""
    documents, extractions = _pages()
    assert (documents, extractions) == movie_pages(num_films=60, seed=0)
    assert len(documents) > 100
    assert [document.id for document in documents] == sorted({d.id for d in documents})
    for document, extraction in zip(documents, extractions, strict=True):
        assert extraction.document_id == document.id
        for head, relation, tail in extraction.triples:
            assert f"{head} {relation} {tail}." in document.text


def test_no_page_tells_what_another_one_does():
    """Ours: a question over two pages takes both."""
    _, extractions = _pages()
    triples = [triple for extraction in extractions for triple in extraction.triples]
    assert len(set(triples)) == len(triples)
    ends = {(triple.head, triple.relation) for triple in triples}
    assert len(ends) == len(triples)
    relations = {triple.relation for triple in triples}
    assert {"directed", "acted in", "was written by", "was released in"} <= relations
