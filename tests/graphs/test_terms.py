"""Tests of hopling.graphs.terms."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.errors import SettingsError, ToolError
from hopling.graphs.terms import (
    Namespace,
    Term,
    Triple,
    decode,
    is_iri,
    parse_results,
    parse_triple,
    refuse_service,
    write_iri,
    write_literal,
)

FREEBASE = Namespace("http://rdf.freebase.com/ns/")
P = "<http://t.example/p>"


@pytest.mark.parametrize(
    "bad",
    [
        "http://t.example/none> ?p ?o } #",
        "http://t.example/a> UNDEF <http://t.example/b",
        "http://t.example/a b",
        "http://t.example/a\\",
        "http://t.example/a\n",
        "m.0abc",
        "",
        "http://t.example/\ud800",
    ],
)
def test_an_id_that_could_end_its_brackets_is_refused(bad: str) -> None:
    """BUGS.md B01; MEASURED.md, pitfall 12."""
    assert not is_iri(bad)
    with pytest.raises(ToolError, match="not a valid id"):
        write_iri(bad)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_written_literal_reads_back_as_it_was(text: str) -> None:
    """SPARQL 1.1, 19.7 and N-Triples 1.1, section 7: string literals and their escapes."""
    written = write_literal(text)
    triple = parse_triple(f"<http://t.example/a> {P} {written} .")
    assert triple.tail == text
    (row,) = ox.Store().query(f"SELECT ?l WHERE {{ VALUES ?l {{ {written} }} }}")
    assert row["l"].value == text


@pytest.mark.parametrize("tag", ['en"', "en ", "-", "en--gb", "en@de", "> }"])
def test_a_language_tag_that_is_none_is_refused(tag: str) -> None:
    """BUGS.md B01."""
    with pytest.raises(ToolError, match="language tag"):
        write_literal("x", language=tag)


def test_half_a_character_is_refused() -> None:
    """Ours: a lone surrogate cannot be sent as UTF-8."""
    with pytest.raises(ToolError, match="half a character"):
        write_literal("\ud800")


@pytest.mark.parametrize(
    "name", ["m.0abc", "/m/0abc", "ns:m.0abc", "fb:m.0abc", " m.0abc ", "<ns:m.0abc>"]
)
def test_every_spelling_of_an_id_reads_as_the_id(name: str) -> None:
    """MEASURED.md, pitfall 6."""
    assert "m.0abc" in FREEBASE.readings(name)
    assert "m.0abc" in FREEBASE.readings("http://rdf.freebase.com/ns/m.0abc")


def test_iris_outside_the_namespace_stay_whole() -> None:
    """Ours: an id must name one IRI, and that IRI must give the id."""
    for iri in ("http://other.example/x", FREEBASE.iri, FREEBASE.iri + "urn:x"):
        assert FREEBASE.shorten(iri) == iri
        assert FREEBASE.expand(iri) == iri


@given(st.from_regex(r"[a-z0-9.:/_-]{0,12}", fullmatch=True))
def test_shortening_and_expanding_are_inverse(rest: str) -> None:
    """Ours."""
    iri = FREEBASE.iri + rest
    assert FREEBASE.expand(FREEBASE.shorten(iri)) == iri


def test_a_blank_node_becomes_an_id_of_its_file() -> None:
    """BUGS.md B05: RDF 1.1, 3.5, skolemisation."""
    assert parse_triple(f"_:b1 {P} _:b.2.", "7") == Triple(
        "genid:7-b1", "http://t.example/p", "genid:7-b.2"
    )


def test_literals_keep_their_form() -> None:
    """BUGS.md B04."""
    for form in ("05", "1.50", "TRUE", "-0044-03-15", "1e3"):
        line = f'<http://t.example/a> {P} "{form}"^^<http://t.example/type> .'
        assert parse_triple(line).tail == form


def test_tags_and_plain_strings_that_rdf_holds_equal_are_one() -> None:
    """RDF 1.1 Concepts, 3.3."""
    start = f"<http://t.example/a> {P} "
    assert parse_triple(start + '"x"@EN-gb .').suffix == "@en-gb"
    string = "http://www.w3.org/2001/XMLSchema#string"
    assert parse_triple(start + f'"x"^^<{string}> .') == parse_triple(start + '"x" . # note')


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (f"<http://t.example/a> {P} <http://t.example/b c> .", "character that is not allowed"),
        (f"<http://t.example/a> {P} <http://t.example/b>", "no full stop"),
        (f'"a" {P} <http://t.example/b> .', "the subject is neither"),
        ("<http://t.example/a> _:p <http://t.example/b> .", "the predicate is not an IRI"),
        (f"<http://t.example/a> {P} 5 .", "the object is neither"),
        (f'<http://t.example/a> {P} "a"b" .', "the object is neither"),
        (f"<a> {P} <http://t.example/b> .", "not absolute"),
        (f'<http://t.example/a> {P} "\\x" .', "not known to N-Triples"),
        (f'<http://t.example/a> {P} "\\uD800" .', "not a character"),
        (f"<http://t.example/a\\u0020> {P} <http://t.example/b> .", "not allowed"),
        ("rubbish", "no full stop"),
    ],
)
def test_a_broken_line_names_the_rule(line: str, rule: str) -> None:
    """BUGS.md B10."""
    with pytest.raises(ValueError, match=rule):
        parse_triple(line)


def test_escapes_are_decoded_once() -> None:
    """MEASURED.md, pitfall 11."""
    assert decode(r"\\n \u0041\U0001F600 \'") == "\\n A\U0001f600 '"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { ?s ?p ?o.service SILENT <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { ?s ?p 1SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { ?s ?p ex:a\\#b\nSERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { # note\rSERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { ?s ?p 'a\nSERVICE <http://127.0.0.1:1/> { ?s ?p ?o } #'",
        "SELECT * { \\u0053ERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
    ],
)
def test_a_query_that_calls_another_server_is_refused(query: str) -> None:
    """MEASURED.md, pitfall 12: SERVICE makes a store call out."""
    with pytest.raises(SettingsError, match="another server"):
        refuse_service(query)


def test_the_word_service_in_text_is_no_call() -> None:
    """SPARQL 1.1, 19.8: strings, IRIs, comments, variables and names are no keywords."""
    refuse_service(
        "SELECT ?service { ?service <http://t.example/service> 'SERVICE' ; ns:service "
        '"""a "SERVICE" b""" } # SERVICE'
    )


@pytest.mark.parametrize(
    "body", ["<html>", "", '{"head": {}, "results": {"bindings": [{"x"', '{"head": {}}', "[1]"]
)
def test_a_body_that_is_no_table_is_no_empty_table(body: str) -> None:
    """BUGS.md B07, B08: a cut body is an error."""
    with pytest.raises(ValueError, match=r".+"):
        parse_results(body, FREEBASE)


def test_results_keep_the_kinds_of_terms() -> None:
    """SPARQL 1.1 Query Results JSON, 3.2; an ASK gives a bool (BUGS.md B04)."""
    assert parse_results('{"boolean": true}', FREEBASE) is True
    body = """{"results": {"bindings": [{
        "a": {"type": "uri", "value": "http://rdf.freebase.com/ns/m.1"},
        "b": {"type": "literal", "value": "007"},
        "c": {"type": "literal", "value": "5", "datatype": "http://t.example/int"},
        "d": {"type": "literal", "value": "x", "xml:lang": "EN"},
        "e": {"type": "bnode", "value": "b0"}}]}}"""
    assert parse_results(body, FREEBASE) == [
        {
            "a": Term("m.1"),
            "b": Term("007", True),
            "c": Term("5", True, "http://t.example/int"),
            "d": Term("x", True, "", "en"),
            "e": Term("_:b0"),
        }
    ]
