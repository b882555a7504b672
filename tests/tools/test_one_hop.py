import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Call, Completion, Ending, Episode, Observation, Prompt, Task, Turn
from hopling.errors import SettingsError, ToolError
from hopling.testing import check_tool
from hopling.tools import OneHopSearch
from small_graph import SmallGraph, movies

OUT = "outgoing"


def _episode() -> Episode:
    return Episode(Task("t", "?", ("m.1",)), Prompt("?"))


def _ask(search: OneHopSearch, *entities: str, direction: str = OUT, **more: object) -> Observation:
    return search(_episode(), entities=list(entities), direction=direction, **more)


def _hub(leaves: int, relations: int = 1) -> SmallGraph:
    rows = [("hub", f"t.r{k % relations}", f"n{k:06}") for k in range(leaves)]
    return SmallGraph(rows, {})


def test_a_small_neighborhood_is_a_markdown_table():
    """SoG-R1 App. A: rows of property, propertyLabel, value, valueLabel; labels [ours]."""
    seen = _ask(OneHopSearch(movies()), "m.1")

    assert seen.text == (
        "| property | propertyLabel | value | valueLabel |\n"
        "|---|---|---|---|\n"
        "| film.film.directed_by | Directed by | m.3 | Ann Lee |\n"
        "| film.film.year | year | 1999 | - |"
    )
    assert seen.nodes == ("m.3", "1999")
    assert seen.names == ("Ann Lee", "1999")


def test_parts_of_one_mediator_stand_together():
    """BUGS B05: role X belongs to film Kismet, role Y to the other one."""
    seen = _ask(OneHopSearch(movies()), "m.10", "m.11")

    rows = [line.strip("| ").split(" | ") for line in seen.text.splitlines()[2:]]
    assert [(row[0], row[-1]) for row in rows] == [
        ("m.10", "Kismet"),
        ("m.10", "X"),
        ("m.11", "Low \\| High"),
        ("m.11", "Y"),
    ]
    assert seen.text.startswith("| entity | entityLabel | property |")


def test_a_mediator_is_named_by_its_id_and_shown_without_a_label():
    """PAPERS 1.2: CVT nodes are unlabeled; ours: "-" in the label column."""
    seen = _ask(OneHopSearch(movies()), "m.4")

    assert "| m.10 | - |" in seen.text
    assert seen.names == ("m.10", "m.11")


def test_a_hub_is_summarized_without_reading_an_edge():
    """BUGS B09: 100,000 leaves of 3 relations, at most 2,000 tokens; SoG-R1 App. A."""
    graph = _hub(100_000, relations=3)

    seen = _ask(OneHopSearch(graph), "hub")

    assert graph.read == []
    assert "100000 rows are too many to show" in seen.text
    assert "| t.r0 | r0 | 33334 |" in seen.text
    assert len(seen.text) < 4 * 2_000


def test_as_many_rows_as_a_page_are_shown_whole():
    """BUGS B09: exactly the page size is not cut. SoG-R1 App. A: more than 50 gives a summary."""
    assert _ask(OneHopSearch(_hub(50)), "hub").text.count("| t.r0 |") == 50
    filtered = _ask(OneHopSearch(_hub(50)), "hub", properties=["t.r0"]).text
    assert "shown" not in filtered
    assert "51 rows are too many" in _ask(OneHopSearch(_hub(51)), "hub").text


def test_a_call_without_properties_may_sum_up_sooner():
    """Ours: one limit for a probe, one for a page of rows."""
    search = OneHopSearch(_hub(8), max_rows=50, max_probe_rows=7)
    assert "8 rows are too many" in _ask(search, "hub").text
    assert _ask(search, "hub", properties=["t.r0"]).text.count("| t.r0 |") == 8
    assert _ask(OneHopSearch(_hub(7), max_probe_rows=7), "hub").text.count("| t.r0 |") == 7


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any), rows=st.integers(1, 5)
)
def test_pages_of_rows_hold_every_row_once(sizes: list[int], rows: int):
    """BUGS B09: a continuation enumerates every item once, in a stable order."""
    edges = [(f"e{k}", "t.r", f"v{k}.{n}") for k, size in enumerate(sizes) for n in range(size)]
    search = OneHopSearch(SmallGraph(edges, {f"e{k}": "" for k in range(len(sizes))}), rows)
    entities = [f"e{k}" for k in range(len(sizes))]

    pages = -(-sum(sizes) // rows)
    seen = [
        _ask(search, *entities, properties=["t.r", f"page {page + 1}"]) for page in range(pages)
    ]

    assert [node for one in seen for node in one.nodes] == [value for _, _, value in edges]
    assert all((f'"page {k + 2}"' in one.text) == (k + 1 < pages) for k, one in enumerate(seen))


def test_a_summary_has_pages_too():
    """PAPERS 1.2: properties 1-50 of 137; asked for as a property, so that no argument is new."""
    search = OneHopSearch(_hub(200, relations=137))

    first = _ask(search, "hub").text
    last = _ask(search, "hub", properties=["page 3"]).text

    assert "Properties 1-50 of 137 shown." in first
    assert '"page 2"' in first
    assert "Properties 101-137 of 137 shown." in last
    assert '"page 4"' not in last
    with pytest.raises(ToolError, match="no page 4: the last property is on page 3"):
        _ask(search, "hub", properties=["page 4"])


def test_long_labels_are_shortened_until_the_table_fits_and_ids_never_are():
    """BUGS B09: a budget for each call."""
    graph = _hub(50)
    graph.names = {f"n{k:06}": "long " * 2_000 for k in range(50)}

    seen = _ask(OneHopSearch(graph, max_chars=6_000), "hub")

    assert len(seen.text) <= 6_000
    assert all(f"| n{k:06} |" in seen.text for k in range(50))
    assert seen.names[0].endswith("...")
    assert seen.names[0] in seen.text


def test_cells_cannot_break_the_table():
    """Ours: bars are escaped and line breaks become spaces; names stay as they are."""
    seen = _ask(OneHopSearch(SmallGraph([("a", "t.r", '"x | y\n| z"')])), "a")

    assert seen.text.splitlines()[-1] == "| t.r | r | x \\| y \\| z | - |"
    assert seen.names == ("x | y\n| z",)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"05"^^<http://www.w3.org/2001/XMLSchema#integer>', "05"),
        ('"true"^^xsd:boolean', "true"),
        ('"Zoe"@en-GB', "Zoe"),
        ('"say \\"hi\\""', 'say "hi"'),
    ],
)
def test_a_literal_is_shown_by_its_lexical_form(literal: str, text: str):
    """BUGS B04: keep the display form."""
    seen = _ask(OneHopSearch(SmallGraph([("a", "t.r", literal)])), "a")

    assert seen.nodes == seen.names == (text,)


def test_an_injected_id_is_an_unknown_entity():
    """BUGS B01: a bad id is a normal tool error."""
    with pytest.raises(ToolError, match=r"There is no entity .*Copy an id exactly"):
        _ask(OneHopSearch(movies()), "http://t.example/none> ?p ?o } #")


def test_an_entity_given_by_name_is_told_its_id():
    """BUGS B26: an unknown id gives an error with near labels."""
    with pytest.raises(ToolError, match=r"no entity 'kismet'\. Similar: m\.1 \(Kismet\)"):
        _ask(OneHopSearch(movies()), "kismet")


def test_an_empty_result_says_what_exists():
    """PAPERS 9: `[]` gives no signal; the other direction and near names do."""
    search = OneHopSearch(movies())

    other = _ask(search, "m.3").text
    near = _ask(search, "m.3", direction="incoming", properties=["film.directed_by"]).text
    partly = _ask(search, "m.1", properties=["film.film.year", "film.actor"]).text

    assert other == ("m.3 has no outgoing edges.\nIncoming properties: film.film.directed_by (2).")
    assert "Did you mean 'film.film.directed_by'?" in near
    assert partly.startswith("No outgoing edges with 'film.actor'.\n| property |")


def test_an_entity_without_any_edge_says_so():
    """BUGS B14: never an empty string."""
    graph = SmallGraph([("a", "t.r", "b")], {"lone": "Lone"})

    text = _ask(OneHopSearch(graph), "lone").text

    assert text == (
        "lone has no outgoing edges.\nThere are no edges in the other direction either."
    )


def test_an_empty_graph_knows_no_entity():
    """BUGS B14: an error that the policy reads, no crash."""
    with pytest.raises(ToolError, match=r"There is no entity 'm\.1'"):
        _ask(OneHopSearch(SmallGraph([])), "m.1")


def test_a_loop_is_an_edge_in_both_directions():
    """BUGS B13: shown once in each, without end."""
    search = OneHopSearch(SmallGraph([("a", "t.r", "a")]))
    assert [_ask(search, "a", direction=way).nodes for way in (OUT, "incoming")] == [("a",)] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": OUT}, "entities is missing or empty"),
        ({"entities": [], "direction": OUT}, "entities is missing or empty"),
        ({"entities": ["m.1", 3], "direction": OUT}, "must be a list of strings, not"),
        ({"entities": ["m.1"]}, 'direction is missing; write "outgoing" or "incoming"'),
        ({"entities": ["m.1"], "direction": "out"}, "Did you mean 'outgoing'?"),
        ({"entities": ["m.1"], "direction": "object"}, "Did you mean 'incoming'?"),
        ({"entities": ["m.1"], "direction": OUT, "property": []}, "Did you mean 'properties'?"),
        ({"entities": ["m.1"], "direction": OUT, "episode": 1}, "no argument 'episode'"),
        ({"entities": [f"m.{k}" for k in range(101)], "direction": OUT}, "ask for at most 100"),
        ({"entities": ["m.1"], "direction": OUT, "properties": 1}, "list of strings, not 1"),
        ({"entities": ["m.1"], "direction": OUT, "properties": ["page 2"]}, "no page 2"),
    ],
)
def test_bad_arguments_say_what_to_write(arguments: dict[str, object], message: str):
    """Ours: messages from which a policy can recover."""
    with pytest.raises(ToolError) as raised:
        OneHopSearch(movies())(_episode(), **arguments)

    assert message in str(raised.value)


def test_a_string_counts_as_a_list_and_an_id_twice_counts_once():
    """Ours: lenient where nothing is lost."""
    search = OneHopSearch(movies())

    assert search(_episode(), entities="m.1", direction=OUT) == _ask(search, "m.1", "ns:m.1")


def test_a_repeated_call_is_answered_with_a_note():
    """BUGS B24: answered again with a note; the order of ids makes no difference."""
    search = OneHopSearch(movies())
    episode = _episode()
    asked = Call("Search", {"entities": ["m.2", "m.1"], "direction": OUT})
    episode.turns.append(Turn("", (asked,), (Observation("..."),)))

    again = search(episode, entities=["m.1", "m.2"], direction=OUT)
    other = search(episode, entities=["m.1"], direction=OUT)

    assert again.text.startswith("You asked this before.\n| entity |")
    assert not other.text.startswith("You asked")


def test_the_same_call_for_ever_ends_with_the_turns():
    """BUGS B24: the turn budget always ends the episode."""
    dialect = ToolCalls()
    search = OneHopSearch(movies())
    world = Environment(lambda task: task.question, (search,), dialect, max_turns=3)
    episode = world.begin(Task("t", "?", ("m.1",)))
    text = dialect.write([Call("Search", {"entities": ["m.1"], "direction": OUT})])

    while not episode.ending:
        world.step(episode, Completion(text))

    assert episode.ending is Ending.OUT_OF_TURNS
    notes = [o.text.startswith("You asked this before.") for o in episode.observations]
    assert notes == [False, True, True]


@pytest.mark.parametrize("max_rows", [1, 2, 50])
def test_it_passes_the_suite_for_tools(max_rows: int):
    """hopling.testing.check_tool."""
    arguments = {"entities": ["m.1"], "direction": OUT, "properties": ["film.film.year"]}
    check_tool(OneHopSearch(movies(), max_rows), arguments)


def test_a_page_of_no_rows_is_refused():
    """CONVENTIONS: what was found, what was expected."""
    with pytest.raises(SettingsError, match="max_rows is 0; expected at least 1"):
        OneHopSearch(movies(), max_rows=0)
