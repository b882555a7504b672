"""Make the movie graph and its tasks that ship with hopling, from MetaQA's files.

    python benchmarks/make_movies.py SOURCE_DIR OUT_DIR

SOURCE_DIR holds `kb.tsv.gz` (head, relation, tail by name) and `questions-{1,2,3}hop-{dev,test}`
(`.jsonl.gz`, with the gold relation path of each question; `^r` walks r backwards). OUT_DIR gets
`triples.tsv.gz`, `names.tsv.gz` and `tasks.jsonl.gz`; `LICENSE.md` beside them is written by hand.
Equal input gives equal files. [MetaQA, Zhang et al. 2018]

- Entities get opaque ids, `m.` and five digits, in a shuffled order, so that no id tells a name.
- A task stays if walking its path gives exactly its answers, if it has at most `MAX_ANSWERS` of
  them and if no earlier hop stands on more than `MAX_WIDTH` nodes. The topic is dropped after every
  hop: no answer is the topic, and "films by the same director" does not mean the film itself.
- One task for each (topic, path). Topics of valid, test and unseen are not topics of train.
- Each split takes the question types in turn, so that they are balanced as far as they go, and hops
  1, 2 and 3 in turn, so that every prefix of a split is balanced too. After the first 900, test has
  questions of one and two hops only, in turn as well.
- The question type `UNSEEN` is in no split but `unseen`.
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SEED = 20180201
MAX_ANSWERS = 3
MAX_WIDTH = 3
UNSEEN = "director_to_movie_to_writer"
HELD_OUT = 0.2  # share of the topics that train does not see
QUOTAS = {"train": 2800, "valid": 100, "test": 300}  # tasks for each number of hops
MORE_TESTS = 1200  # and so many more for each, after the 300
NUM_UNSEEN = 150

Row = dict[str, Any]
Steps = dict[tuple[str, str], set[str]]


def main() -> None:
    """Read SOURCE_DIR, write OUT_DIR and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    for name, lines in files(options.source).items():
        write_gzip(options.out / name, lines)
        print(f"{name}\t{len(lines)} lines")


def files(source: Path) -> dict[str, list[str]]:
    """Return the lines of each shipped file."""
    triples = sorted(tuple(line.split("\t")) for line in lines_of(source / "kb.tsv.gz"))
    names = sorted({name for head, _, tail in triples for name in (head, tail)})
    ids = opaque_ids(names)
    coded = sorted((ids[head], relation, ids[tail]) for head, relation, tail in triples)
    tasks = [
        json.dumps(task, ensure_ascii=False) for task in select(questions(source), triples, ids)
    ]
    return {
        "triples.tsv.gz": ["\t".join(triple) for triple in coded],
        "names.tsv.gz": [f"{node}\t{name}" for node, name in sorted((ids[n], n) for n in names)],
        "tasks.jsonl.gz": tasks,
    }


def opaque_ids(names: list[str]) -> dict[str, str]:
    """Return an id for each name that tells nothing of the name or of its place in the alphabet."""
    numbers = list(range(10000, 10000 + len(names)))
    random.Random(SEED).shuffle(numbers)
    return {name: f"m.{number}" for name, number in zip(names, numbers, strict=True)}


def questions(source: Path) -> Iterator[Row]:
    """Yield every question, dev before test, fewer hops first."""
    for hops in (1, 2, 3):
        for split in ("dev", "test"):
            for line in lines_of(source / f"questions-{hops}hop-{split}.jsonl.gz"):
                yield json.loads(line)


def select(
    rows: Iterable[Row], triples: Iterable[tuple[str, ...]], ids: dict[str, str]
) -> list[Row]:
    """Return the shipped tasks in their order: train, valid, test, unseen."""
    steps = steps_of(triples)
    kept: dict[tuple[str, tuple[str, ...]], Row] = {}
    for row in rows:
        if row["check"].startswith("exact") and is_small(row, steps):
            kept.setdefault((row["topic"], tuple(row["path"])), row)
    rng = random.Random(SEED + 1)
    topics = sorted({topic for topic, _ in kept})
    held_out = set(rng.sample(topics, round(HELD_OUT * len(topics))))
    pool = list(kept.values())
    rng.shuffle(pool)
    seen = [row for row in pool if row["qtype"] != UNSEEN]
    inside = by_hops(row for row in seen if row["topic"] not in held_out)
    outside = by_hops(row for row in seen if row["topic"] in held_out)
    unseen = [row for row in pool if row["qtype"] == UNSEEN and row["topic"] in held_out]
    tests = {hops: turns[: QUOTAS["test"]] for hops, turns in outside.items()}
    start = QUOTAS["test"]
    end = start + QUOTAS["valid"]
    valids = {hops: turns[start:end] for hops, turns in outside.items()}
    more = {hops: turns[end : end + MORE_TESTS] for hops, turns in outside.items() if hops < 3}
    trains = {hops: turns[: QUOTAS["train"]] for hops, turns in inside.items()}
    splits = {
        "train": in_turn(trains),
        "valid": in_turn(valids),
        "test": in_turn(tests) + in_turn(more),
        "unseen": unseen[:NUM_UNSEEN],
    }
    return [task(row, split, ids) for split, chosen in splits.items() for row in chosen]


def steps_of(triples: Iterable[tuple[str, ...]]) -> Steps:
    """Return, for each (entity, relation or `^relation`), the entities one hop away."""
    steps: Steps = defaultdict(set)
    for head, relation, tail in triples:
        steps[head, relation].add(tail)
        steps[tail, f"^{relation}"].add(head)
    return steps


def is_small(row: Row, steps: Steps) -> bool:
    """Whether the path gives exactly the answers, and every hop stands on few nodes."""
    nodes, topic = {row["topic"]}, row["topic"]
    for relation in row["path"]:
        if len(nodes) > MAX_WIDTH:
            return False
        nodes = set().union(*(steps.get((node, relation), set()) for node in nodes)) - {topic}
    return 0 < len(nodes) <= MAX_ANSWERS and nodes == set(row["answers"])


def by_hops(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return the rows for each number of hops, question types in turn."""
    groups: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["hops"]][row["qtype"]].append(row)
    return {hops: in_turn(dict(sorted(types.items()))) for hops, types in sorted(groups.items())}


def in_turn(groups: dict[Any, list[Row]]) -> list[Row]:
    """Return the first row of every group, then the second of every group that has one, and on."""
    longest = max(map(len, groups.values()), default=0)
    return [group[i] for i in range(longest) for group in groups.values() if i < len(group)]


def task(row: Row, split: str, ids: dict[str, str]) -> Row:
    """Return the row as it ships."""
    answers = sorted(row["answers"])
    return {
        "id": row["id"],
        "question": row["question"],
        "start": [ids[row["topic"]]],
        "answers": answers,
        "answer_ids": [ids[answer] for answer in answers],
        "hops": row["hops"],
        "qtype": row["qtype"],
        "path": row["path"],
        "split": split,
    }


def lines_of(path: Path) -> list[str]:
    """Return the lines of a gzip file, without their ends."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


def write_gzip(path: Path, lines: list[str]) -> None:
    """Write the lines so that equal lines give equal bytes."""
    text = "".join(f"{line}\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode("utf-8"), 9, mtime=0))


if __name__ == "__main__":
    main()
