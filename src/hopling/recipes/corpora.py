"""What a recipe searches when it searches documents."""

from dataclasses import replace

from hopling.data.movie_pages import movie_pages
from hopling.graphs.documents import DocumentGraph, Retrieval

NUM_FILMS = 2500  # ours: 6,252 pages with those of their people


def documents(folder: str, retrieval: Retrieval) -> DocumentGraph:
    """Return the document graph of a folder; without one, that of the shipped films' pages."""
    if folder:
        return DocumentGraph.open(folder, retrieval=retrieval)
    pages, extractions = movie_pages(num_films=NUM_FILMS, seed=0)
    return replace(DocumentGraph.build(pages, extractions), retrieval=retrieval)
