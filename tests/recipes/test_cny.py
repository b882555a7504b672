"""CNY's recipe at a size for tests: stages, controls, views and the constructed walks."""

import io
import json
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from hopling import records
from hopling.data.text_graphs import HIDDEN, labeled_graph
from hopling.episode import Answer, Call, Ending
from hopling.errors import SettingsError
from hopling.evaluation.controls import walked as walked_nodes
from hopling.evaluation.report import Report
from hopling.policies.scripted import Scripted
from hopling.recipes import cny
from hopling.recipes.prompts.walking import CONTROLS
from hopling.recipes.walk_graphs import walked
from hopling.recipes.walkers import dialect_of, traces
from hopling.rewards.ladder import ladder
from hopling.rollout import rollout
from hopling.settings import load, untagged
from hopling.training.settings import GRPO, OPSD

SIZE = {
    "sft": {"max_steps": 2, "tokens_per_batch": 256},
    "grpo": {
        "steps": 1,
        "group_size": 2,
        "batch_size": 2,
        "minibatch_size": 2,
        "micro_batch_size": 4,
        "max_turn_tokens": 4,
    },
    "opsd": {"max_recap_tokens": 4},
    "limit": 2,
}
KINDS = {"oak": "plant", "rose": "plant", "owl": "animal", "cat": "animal"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two rings of 16 nodes, `x` and `y`, of which every second is a task."""
    nodes, edges = [], []
    for graph, first in (("x", 0), ("y", 100)):
        for k in range(16):
            word = list(KINDS)[k % 4]
            split = ["train", "", "test", "", "valid", "", "train", ""][k % 8]
            kind = KINDS[word] if k % 5 else ("plant" if split else "")
            text = f"some {word} number {k} that stands here"
            nodes.append(f"{first + k}\t{graph}\t{kind}\t{split}\t{word} {k}\t{text}")
            edges += [f"{first + k}\t{first + (k + d) % 16}" for d in (1, 3)]
    (tmp_path / "nodes.tsv").write_text("\n".join(nodes) + "\n")
    (tmp_path / "edges.tsv").write_text("\n".join(edges) + "\n")
    return tmp_path


def chosen(data: Path, **changes: object) -> cny.Settings:
    """Return the small scale's settings on the two rings."""
    own = {"train": "x", "test": "x,y", "data": str(data), **SIZE, **changes}
    return load(cny.Settings, own, presets=cny.SCALES["small"])


def test_a_run_trains_a_student_for_each_beta_and_plays_the_controls(data: Path) -> None:
    """CNY 5.3, 5.5: SFT, GRPO and OPSD on both graphs; each control of the last on both."""
    out = io.StringIO()
    console = Console(file=out, width=120)
    report: Report = cny.run(chosen(data), data / "run", console)
    names = list(report.numbers["stages"])
    trained = [f"{stage}, {graph}" for stage in ("SFT", "GRPO", "OPSD 0.03") for graph in "xy"]
    assert names[:6] == trained
    assert {f"OPSD 0.03, y: {view}" for view in (*CONTROLS, "rewired")} < set(names)
    rows = records.read(data / "run" / "training" / "OPSD 0.03" / "metrics.jsonl")
    assert "delta_abs" in rows[-1]
    assert "delta_abs" not in records.read(data / "run/training/GRPO/metrics.jsonl")[-1]
    assert "vote of 4" in out.getvalue()
    assert ">=2 walks" in out.getvalue() or "no walk" in out.getvalue()


def test_constructed_walks_are_carried_out_and_end_rightly(data: Path) -> None:
    """Ours: on copies of the graph with other ids, in every view."""
    world = walked(chosen(data), ("x", "y"), dialect_of("tiny"))
    made = [e for e in traces(world, seed=0) if not e.task.id.startswith("recap")]
    assert {e.ending for e in made} == {Ending.ANSWERED}
    assert all(e.answer and e.answer.text == e.task.answers[0] for e in made)
    assert not any(observation.error for e in made for observation in e.observations)
    walks = [e for e in made if walked_nodes(e)]
    assert {e.task.id.partition("/")[0] for e in walks} == {"x", "y"}
    ids = {e.task.id: set() for e in walks}
    for e in walks:
        ids[e.task.id].add(e.task.start)
    assert any(len(starts) > 1 for starts in ids.values())


def test_a_view_shows_what_it_is_called_after(data: Path) -> None:
    """CNY 5.3, App. F.2: nothing, previews, one text, all texts; the walk sees the previews."""
    world = walked(
        chosen(data, preview_words=2, max_first=8, max_new=8), ("x",), dialect_of("tiny")
    )
    task = world.tasks("test")[0]
    graph = world.graphs[0].graph
    around = graph.neighbors(task.start[0])
    told = {v: world.world(v).begin(task).prompt.user for v in ("walk", *CONTROLS)}
    assert HIDDEN in told["walk"]
    assert all(f"[{node}]: {graph.preview(node)}" in told["walk"] for node in around)
    assert all(f"[{node}]: {graph.preview(node)}" in told["previews"] for node in around)
    assert not any(f"[{node}]" in told["nothing"] for node in around)
    assert sum(graph.text(node) in told["one text"] for node in around) == 1
    assert all(graph.text(node) in told["all texts"] for node in around)
    assert world.world().tools
    assert not any(world.world(view).tools for view in CONTROLS)


def test_the_target_is_shown_as_the_setting_says(data: Path) -> None:
    """CNY 4.1: the text; ours: its name, or nothing."""
    for shown in ("text", "name", "nothing"):
        (task, *_) = labeled_graph("x", folder=data, shown=shown).tasks["test"]
        expected = {"text": "some owl number 2", "name": "owl 2", "nothing": HIDDEN}[shown]
        assert task.question.startswith(expected)
        assert task.answers == ("animal",)


def test_a_renamed_graph_is_the_same_graph(data: Path) -> None:
    """Ours: ids change, texts, classes, tasks and neighbors do not."""
    before = labeled_graph("x", folder=data)
    after = before.renamed(Random(0))
    for old, new in zip(before.tasks["test"], after.tasks["test"], strict=True):
        assert (old.id, old.answers) == (new.id, new.answers)
        texts = [
            sorted(g.graph.text(n) for n in g.graph.neighbors(t.start[0]))
            for g, t in ((before, old), (after, new))
        ]
        assert texts[0] == texts[1]
    assert set(before.graph.texts) != set(after.graph.texts)


def test_the_shipped_graphs_have_no_node_in_common() -> None:
    """Ours: b is a graph that is not trained on."""
    a, b = labeled_graph("a"), labeled_graph("b")
    assert not set(a.graph.texts) & set(b.graph.texts)
    assert (len(a.tasks["train"]), len(a.tasks["test"]), len(b.tasks["test"])) == (1633, 200, 480)
    assert a.classes == b.classes
    assert "train" not in b.tasks


def test_an_unknown_graph_and_a_bad_file_are_named(data: Path) -> None:
    """BUGS B11."""
    with pytest.raises(SettingsError, match=r"no graph 'z'\. Graphs: x, y"):
        labeled_graph("z", folder=data)
    (data / "edges.tsv").write_text("0\t1\t2\n")
    with pytest.raises(SettingsError, match="line 1 has 3 columns; expected 2"):
        labeled_graph("x", folder=data)


def test_defaults_are_those_of_the_paper() -> None:
    """CNY Table 9."""
    settings = cny.Settings()
    assert untagged(cny.Settings) == []
    assert settings.grpo == GRPO(
        steps=1000,
        group_size=8,
        batch_size=32,
        minibatch_size=32,
        learning_rate=1e-6,
        weight_decay=0.01,
        adam_beta2=0.98,
        top_p=1.0,
        top_k=0,
        kl=0.0,
        clip_low=0.2,
        clip_high=0.28,
        loss="grpo",
        advantage="standardized",
        max_turn_tokens=2048,
    )
    assert settings.opsd == OPSD(
        beta=0.03, max_recap_tokens=50, clip=None, average=False, gate=False
    )
    assert (settings.max_turns, settings.max_first, settings.max_tokens) == (5, 3, 32_768)


def test_a_mixture_of_all_families_is_walked_and_judged(tmp_path: Path) -> None:
    """CNY 5.1, App. D.3-D.5: nodes, edges, stances and open questions in one world."""
    asked = cny.Settings(data=str(published(tmp_path)), max_turns=3)
    names = ("wikispeedia", "wn18rr", "explagraphs", "webqsp-fragment")
    mixture = walked(asked, names, dialect_of("Qwen/Qwen2.5-14B-Instruct"))
    world, tasks = mixture.world(), mixture.tasks("test")
    told = {t.id.partition("/")[0]: world.begin(t).prompt.user for t in tasks}
    assert "Classes: IT, Science" in told["wikispeedia"]
    assert "Choose one of the numbered answers." in told["wn18rr"]
    assert "Classes: counter, support" in told["explagraphs"]
    assert "with one name" in told["webqsp-fragment"]
    assert "is a" not in told["explagraphs"].partition("Neighbors:")[2]
    scripts = {}
    for task in tasks:
        (first, *_) = mixture.tool(mixture.labeled(task)).first(task)
        answer = "osl" if task.id.startswith("webqsp") else task.answers[0]
        actions = ([Call("walk", {"node": first})], [Answer(answer)])
        scripts[task.id] = [mixture.dialect.write(own) for own in actions]
    episodes = rollout(Scripted(scripts), world, tasks)
    assert {mixture.right(e) for e in episodes} == {1.0}
    assert {len(walked_nodes(e)) for e in episodes} == {1}
    reward = ladder(correct=mixture.right)
    assert {reward(e) for e in episodes} == {1.0}


def published(folder: Path) -> Path:
    """Write a small copy of four published sets, in their own forms."""
    stance = {
        "belief": "B",
        "argument": "A",
        "label": "counter",
        "triples": [["women", "is a", "citizens"], ["citizens", "have", "rights"]],
    }
    ns = "http://rdf.freebase.com/ns/"
    question = {"id": "q", "question": "where was Ann born?", "start": ["m.1"]}
    question |= {"answers": ["Oslo"], "answer_ids": ["m.2"], "hints": {"split": "test"}}
    articles = [
        {"id": n, "title": n, "categories": [kind], "text": "some text"}
        for n, kind in zip("abcdefghij", ["Science.X", "IT"] * 5, strict=True)
    ]
    files = {
        "wikispeedia/articles.jsonl": [json.dumps(row) for row in articles],
        "wikispeedia/links.tsv": [f"{a}\t{b}" for a in "abcdefghij" for b in "abc" if a != b],
        "wn18rr/entities.tsv": [f"{n}\t{n.upper()}\tgloss" for n in "xyz"],
        "wn18rr/relations.tsv": ["/has\thas", "/is\tis"],
        "wn18rr/train.tsv": ["x\t/has\ty", "y\t/has\tz"],
        "wn18rr/valid.tsv": [],
        "wn18rr/test.tsv": ["x\t/is\tz"],
        "explagraphs/train.jsonl": [],
        "explagraphs/dev.jsonl": [json.dumps(stance)],
        "webqsp-fragment/questions.jsonl": [json.dumps(question)],
        "webqsp-fragment/webqsp-fragment.nt": [
            f"<{ns}m.1> <{ns}people.person.born> <{ns}m.2> .",
            f'<{ns}m.1> <{ns}type.object.name> "Ann"@en .',
            f'<{ns}m.2> <{ns}type.object.name> "Oslo"@en .',
        ],
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder
