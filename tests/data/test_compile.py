import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.data.compile import Compiler, Path, gold_path
from hopling.data.hops import gold_query
from hopling.data.reading import Discipline, Reading
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Episode, Prompt, Task
from hopling.rewards import all_calls_ran, exact_match
from hopling.rollout import rollout
from hopling.tools import OneHopSearch
from small_graph import SmallGraph

NS = "http://rdf.freebase.com/ns/"


def _play(
    graph: SmallGraph,
    task: Task,
    discipline: Discipline = "probe",
    max_rows: int = 50,
    max_probe_rows: int | None = None,
) -> tuple[Episode, Compiler]:
    dialect = ToolCalls()
    tools = (OneHopSearch(graph, max_rows=max_rows, max_probe_rows=max_probe_rows),)
    environment = Environment(lambda task: Prompt(task.question), tools, dialect, 99)
    plan = gold_path if "path" in task.hints else gold_query
    compiler = Compiler(graph, dialect, [task], plan, discipline, max_rows, max_probe_rows)
    (episode,) = rollout(compiler, environment, [task])
    return episode, compiler


def _asks(episode: Episode) -> list[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    return [
        (
            tuple(call.arguments["entities"]),
            call.arguments["direction"],
            tuple(call.arguments.get("properties", ())),
        )
        for turn in episode.turns
        for call in turn.calls
    ]


def _path(*steps: str, start: str, answers: tuple[str, ...]) -> Task:
    return Task("t", "?", (start,), answers, hints={"path": list(steps)})


def _query(where: str, *, start: tuple[str, ...], answers: tuple[str, ...], end: str = "") -> Task:
    sparql = (
        f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\nSELECT DISTINCT ?x {{ {where} }} {end}"
    )
    words = [f"<{NS}{w[1:]}>" if w.startswith("@") else w for w in sparql.split(" ")]
    return Task("t", "?", start, answers, hints={"sparql": " ".join(words)})


def _films() -> SmallGraph:
    rows = [
        ("m.1", "directed_by", "m.3"),
        ("m.2", "directed_by", "m.3"),
        ("m.1", "has_genre", "m.5"),
        ("m.2", "has_genre", "m.6"),
        ("m.2", "has_genre", "m.5"),
    ]
    names = {"m.1": "Kismet", "m.2": "Low", "m.3": "Ann Lee", "m.5": "Drama", "m.6": "Crime, noir"}
    return SmallGraph(rows, names)


def _offices(crowd: int = 0) -> SmallGraph:
    """A country, two positions held (CVT nodes), their holders, titles and years."""
    rows = [
        ("m.c", "country.division", "m.d"),
        ("m.c", "country.officials", "m.p1"),
        ("m.c", "country.officials", "m.p2"),
        ("m.p1", "position.holder", "m.a"),
        ("m.p1", "position.title", "m.t1"),
        ("m.p1", "position.from", '"2001-05-01"'),
        ("m.p2", "position.holder", "m.b"),
        ("m.p2", "position.title", "m.t2"),
        ("m.p2", "position.from", '"2009-05-01"'),
        ("m.a", "type.object.type", "person"),
        ("m.b", "type.object.type", "person"),
        *(("m.c", "country.contains", f"m.x{n:03}") for n in range(crowd)),
    ]
    names = {"m.c": "Averland", "m.d": "Northland", "m.a": "Ida", "m.b": "Tom", "m.t1": "Premier"}
    return SmallGraph(rows, names)


def test_a_path_is_walked_with_one_batched_call_per_hop():
    """SoG-R1 4.2: each triple is one hop; App. A: batch the entities of a frontier."""
    task = _path("^directed_by", "has_genre", start="m.3", answers=("Drama", "Crime, noir"))
    episode, _ = _play(_films(), task)

    assert _asks(episode) == [(("m.3",), "incoming", ()), (("m.1", "m.2"), "outgoing", ())]
    assert exact_match(episode) == 1.0
    assert all_calls_ran(episode) == 1.0


def test_a_path_drops_its_start_from_every_frontier():
    """MetaQA's gold answers leave the topic out (DATA.md)."""
    task = _path("directed_by", "^directed_by", "has_genre", start="m.1", answers=("Drama",))
    episode, _ = _play(_films(), task)

    assert _asks(episode)[-1] == (("m.2",), "outgoing", ())
    assert episode.answer is not None
    assert episode.answer.text == "{Drama}, {Crime, noir}"


def test_a_second_call_with_properties_follows_a_summary_only():
    """SoG-R1 App. A, the probe-then-filter discipline."""
    task = _path("country.officials", "position.holder", start="m.c", answers=("Ida", "Tom"))
    few, _ = _play(_offices(), task)
    many, _ = _play(_offices(crowd=60), task)

    assert [properties for *_, properties in _asks(few)] == [(), ()]
    assert _asks(many) == [
        (("m.c",), "outgoing", ()),
        (("m.c",), "outgoing", ("country.officials",)),
        (("m.p1", "m.p2"), "outgoing", ()),
    ]
    assert exact_match(many) == 1.0


def test_a_tool_that_sums_up_sooner_is_asked_again_sooner():
    """Ours: the teacher foresees the limit of its student's tool."""
    task = _path("country.officials", "position.holder", start="m.c", answers=("Ida", "Tom"))
    episode, _ = _play(_offices(), task, max_probe_rows=2)

    assert [properties for *_, properties in _asks(episode)] == [
        (),
        ("country.officials",),
        (),
        ("position.holder",),
    ]
    assert exact_match(episode) == all_calls_ran(episode) == 1.0


def test_named_tasks_are_filtered_at_once_and_the_others_are_probed():
    """Ours: traces of both kinds leave practice a choice."""
    tasks = [
        Task(id, "?", ("m.c",), ("m.p1", "m.p2"), hints={"path": ["country.officials"]})
        for id in ("a", "b")
    ]
    graph, dialect = _offices(crowd=60), ToolCalls()
    environment = Environment(lambda t: Prompt(t.question), (OneHopSearch(graph),), dialect, 9)
    compiler = Compiler(graph, dialect, tasks, filtered=frozenset({"b"}))
    probed, filtered = rollout(compiler, environment, tasks)

    assert [len(_asks(episode)) for episode in (probed, filtered)] == [2, 1]


def test_the_filter_discipline_names_the_property_at_once():
    """Ours: a tiny model may skip the probe."""
    task = _path("country.officials", start="m.c", answers=("m.p1", "m.p2"))
    episode, _ = _play(_offices(crowd=60), task, "filter")

    assert _asks(episode) == [(("m.c",), "outgoing", ("country.officials",))]
    assert exact_match(episode) == 1.0


def test_pages_are_turned_until_every_row_is_printed():
    """Ours: the tool prints a page of rows and offers the next one."""
    names = tuple(f"m.x{n:03}" for n in range(120))
    task = _path("country.contains", start="m.c", answers=names)
    episode, _ = _play(_offices(crowd=120), task)

    properties = [properties for *_, properties in _asks(episode)]
    assert properties[1:] == [
        ("country.contains",),
        ("country.contains", "page 2"),
        ("country.contains", "page 3"),
    ]
    assert exact_match(episode) == 1.0


def test_a_cvt_condition_is_read_in_the_same_call_as_the_answer():
    """SoG-R1 App. A: CVT nodes are asked in one batch."""
    where = (
        "?c @country.division @m.d . ?c @country.officials ?y . "
        "?y @position.holder ?x . ?y @position.title @m.t1 . FILTER ( ?x != ?c )"
    )
    task = _query(where, start=("m.d", "m.t1"), answers=("Ida",))
    episode, _ = _play(_offices(), task)

    assert _asks(episode) == [
        (("m.d",), "incoming", ()),
        (("m.c",), "outgoing", ()),
        (("m.p1", "m.p2"), "outgoing", ()),
    ]
    assert exact_match(episode) == 1.0


@pytest.mark.parametrize(
    ("where", "end", "answers"),
    [
        ('?y @position.from "2009-05-01" . ', "", ("Tom",)),
        ('?y @position.from ?f . FILTER ( xsd:date(?f) < "2005-01-01"^^xsd:date )', "", ("Ida",)),
        ("?y @position.from ?f . ", "ORDER BY DESC(?f) LIMIT 1", ("Tom",)),
        ("FILTER ( ?x != @m.a )", "", ("Tom",)),
        ("?x @type.object.type @person . ", "", ("Ida", "Tom")),
        ("OPTIONAL { ?y @position.end ?e . }", "", ("Ida", "Tom")),
        ("FILTER NOT EXISTS { ?y @position.title @m.t1 . }", "", ("Tom",)),
        ("{ ?y @position.title @m.t1 . } UNION { ?y @position.title @m.t2 . }", "", ("Ida", "Tom")),
    ],
)
def test_conditions_are_answered_over_the_rows_that_were_printed(
    where: str, end: str, answers: tuple[str, ...]
):
    """SPARQL 1.1; SoG-R1 4.2 walks the gold query."""
    walk = f"@m.c @country.officials ?y . ?y @position.holder ?x . {where}"
    episode, compiler = _play(_offices(), _query(walk, start=("m.c",), answers=answers, end=end))

    assert compiler.explain(episode) is None
    assert exact_match(episode) == 1.0


def test_a_type_that_every_candidate_has_is_not_looked_up():
    """Ours: the property walked last says what kind of thing stands there."""
    where = "@m.c @country.officials ?y . ?y @position.holder ?x . ?x @type.object.type @person ."
    episode, _ = _play(_offices(), _query(where, start=("m.c",), answers=("Ida", "Tom")))

    assert len(_asks(episode)) == 2


def test_a_type_that_excludes_a_candidate_is_looked_up():
    """Ours, the other side."""
    graph = _offices()
    graph = SmallGraph([row for row in graph.rows if row[0] != "m.b"], graph.names)
    where = "@m.c @country.officials ?y . ?y @position.holder ?x . ?x @type.object.type @person ."
    episode, _ = _play(graph, _query(where, start=("m.c",), answers=("Ida",)))

    assert _asks(episode)[-1] == (("m.a", "m.b"), "outgoing", ())
    assert exact_match(episode) == 1.0


@pytest.mark.parametrize(
    ("where", "start", "reason"),
    [
        ("@m.c ?p ?x .", ("m.c",), "a relation is a variable"),
        ("@m.c @a / @b ?x .", ("m.c",), "a relation is a property path"),
        ("?y @position.holder ?x .", ("m.c",), "no start entity leads to the answer"),
        ("@m.c @country.king ?x .", ("m.c",), "the rows that can be read hold no answer"),
        ("@m.c @type.object.name ?x .", ("m.c",), "the query reads a name as an edge"),
        ("this is no SPARQL", ("m.c",), "the query does not parse"),
        ("VALUES ?x { @m.c }", ("m.c",), "the query has no triple pattern"),
        (
            # rdflib parses what SPARQL 1.1, 19.8 note 12 forbids, pyoxigraph does not
            "{ SELECT ?x (COUNT(?y) AS ?n) "
            "{ @m.c @country.officials ?y . ?y @position.holder ?x } }",
            ("m.c",),
            "the query does not parse",
        ),
    ],
)
def test_what_no_calls_express_is_explained(where: str, start: tuple[str, ...], reason: str):
    """Issue 2, part 5: report by class what the tool could not express."""
    answers = ("Ida", "Tom")
    episode, compiler = _play(_offices(), _query(where, start=start, answers=answers))

    assert compiler.explain(episode) == reason
    assert exact_match(episode) == 0.0


def test_every_view_can_be_answered_without_the_turns_before_it():
    """Law 1: the episode is the state; a fresh compiler goes on where another one stopped."""
    task = _path("^directed_by", "has_genre", start="m.3", answers=("Drama", "Crime, noir"))
    episode, _ = _play(_films(), task)
    view = episode.view()
    before = [view.turns[:n] for n in range(len(view.turns))]

    for turns, turn in zip(before, view.turns, strict=True):
        fresh = Compiler(_films(), ToolCalls(), [task])
        shown = type(view)(view.key, "t", 0, view.prompt, (), turns, ())
        assert fresh.generate([shown], ())[0].text == turn.text


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from(["r", "s"]), st.integers(0, 6)),
        min_size=1,
        max_size=30,
        unique=True,
    ),
    st.lists(st.sampled_from(["r", "^r", "s", "^s"]), min_size=1, max_size=3),
)
def test_a_walk_ends_at_the_paths_end_whatever_the_graph(
    rows: list[tuple[int, str, int]], steps: list[str]
):
    """Ours: against a walk over the plain rows, with pages of three rows."""
    graph = SmallGraph([(f"n{s}", r, f"n{o}") for s, r, o in rows])
    frontier = {"n0"}
    for step in steps:
        back, relation = step.startswith("^"), step.removeprefix("^")
        frontier = {
            s if back else o
            for s, r, o in graph.rows
            if r == relation and (o if back else s) in frontier
        } - {"n0"}
    task = _path(*steps, start="n0", answers=tuple(frontier) or ("none",))
    episode, compiler = _play(graph, task, max_rows=3)

    assert (compiler.explain(episode) is None) == bool(frontier)
    assert exact_match(episode) == float(bool(frontier))


def test_a_reading_counts_the_calls_that_it_will_make():
    """Ours: the order of hops rests on this count."""
    graph = _offices(crowd=120)
    reading = Reading(graph)
    expected = reading.num_calls(["m.c"], "outgoing", ["country.contains"])
    task = _path("country.contains", start="m.c", answers=("?",))
    episode, _ = _play(graph, task)

    assert expected == len(_asks(episode)) == 4


def test_a_path_is_a_plan_of_its_own():
    """Ours: plans are functions from a reading to a walk."""
    walk = Path("m.3", ("^directed_by",))(Reading(_films()))

    (call,) = next(walk)
    assert call.arguments == {"entities": ["m.3"], "direction": "incoming"}
