"""Which names are one entity: the rule, what it keeps apart, and how a user overrules it."""

from hypothesis import given
from hypothesis import strategies as st

from hopling.graphs.entities import homonyms, key_of, resolve, triples_of
from hopling.graphs.openie import Extraction, Triple


def test_case_merges_and_kinds_keep_apart() -> None:
    """BUGS B15: "ACME Corp"/"Acme corp", "Jordan" country and person: 3 nodes, one alias."""
    facts = resolve(
        [
            Extraction("1", ("ACME Corp", "Jordan"), kinds={"Jordan": "place"}),
            Extraction("2", ("Acme corp", "Jordan"), kinds={"Jordan": "person"}),
            Extraction("3", ("ACME Corp",)),
        ],
        {},
    )
    assert [entity.id for entity in facts.entities] == [
        "ACME Corp",
        "Jordan (place)",
        "Jordan (person)",
    ]
    assert facts.entities[0].aliases == (("ACME Corp", 2), ("Acme corp", 1))
    assert [[e.kind for e in group] for group in homonyms(facts.entities)] == [["place", "person"]]


def test_a_document_that_does_not_say_the_kind_means_the_commonest() -> None:
    """Ours: a name of unknown kind makes no node of its own."""
    told = [Extraction(str(n), ("Jordan",), kinds={"Jordan": "place"}) for n in range(2)]
    other = Extraction("p", ("Jordan",), kinds={"Jordan": "person"})
    facts = resolve([*told, other, Extraction("u", ("jordan",))], {})
    assert [facts.entities[e].kind for _, e in facts.mentions] == [
        "place",
        "place",
        "person",
        "place",
    ]


def test_an_alias_table_merges_and_takes_apart() -> None:
    """BUGS B15: the rule can be undone, form by form."""
    read = [Extraction("1", ("US", "us", "United States"))]
    assert len(resolve(read, {}).entities) == 2
    facts = resolve(read, {"US": "United States", "us": "us (pronoun)"})
    assert [entity.id for entity in facts.entities] == ["United States", "us (pronoun)"]
    assert facts.mentions.tolist() == [[0, 0], [0, 1]]


def test_triples_are_counted_once_and_remember_who_states_them() -> None:
    """GTA-RAG Eq. 4: T is a set; two documents may state one fact."""
    fact, same = Triple("Oslo", "is in", "Norway"), Triple("oslo", "is in", "NORWAY")
    facts = resolve([Extraction("1", triples=(fact, same)), Extraction("2", triples=(same,))], {})
    assert facts.stated.tolist() == [[0, 0], [1, 0]]
    assert triples_of(facts, [0]) == [Triple("oslo", "is in", "NORWAY")]
    assert facts.mentions.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_the_key_is_the_documented_one() -> None:
    """BUGS B19: NFKC, case, punctuation, a leading "the"; never empty for a name."""
    assert key_of("The Beatles") == key_of("beatles") == "beatles"
    assert key_of("St. John's") == key_of("st john s")
    assert key_of("!!!") == "!!!"
    assert key_of("The") == "the"


@given(st.text(min_size=1))
def test_a_key_is_the_key_of_itself(name: str) -> None:
    """Ours: looking up a key finds what looking up the name finds."""
    assert key_of(key_of(name)) == key_of(name) or key_of(name).startswith("the ")
