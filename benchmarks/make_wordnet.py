"""Cut the two WordNet graphs that ship with hopling out of WN18RR with its glosses.

    python benchmarks/make_wordnet.py SOURCE_DIR OUT_DIR

SOURCE_DIR holds `entities.tsv.gz` (offset, lemma, gloss) and `train`, `valid` and `test.tsv.gz`
(head, relation, tail). OUT_DIR gets `nodes.tsv.gz` (id, graph, class, split, name, text) and
`edges.tsv.gz` (id, id); `LICENSE.md` beside them is written by hand. Equal input gives equal files.

- A class is one of `CLASSES`: the only one of these synsets among a node's hypernyms of any depth.
- A target has a class, 2 to 8 neighbors, at least one of them with a class. Graph `a` takes up to
  `QUOTAS` targets of each class with all their neighbors, and so does `b`, so that the two graphs
  have no node in common; edges are those of WN18RR between a graph's nodes.
- A text is the gloss up to its first example or semicolon, at most 14 words, then the name.
- Ids are numbers in a shuffled order, so that no id tells a name.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

from make_movies import lines_of, write_gzip

SEED = 18
CLASSES = {
    "person": "00007846",
    "artifact": "00021939",
    "genus": "08108972",
    "plant": "00017222",
    "animal": "00015388",
    "place": "00027167",
    "communication": "00033020",
    "act": "00030358",
}
QUOTAS = {"b": {"test": 60}, "a": {"test": 25, "valid": 15, "train": 210}}
MAX_NEIGHBORS = 8
MAX_WORDS = 14

Neighbors = dict[str, set[str]]


def main() -> None:
    """Read SOURCE_DIR, write OUT_DIR and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    rows = [line.split("\t") for line in lines_of(options.source / "entities.tsv.gz")]
    # where offsets of two parts of speech collide, glosses were joined with three spaces
    glosses = {node: _shortened(gloss) for node, _, gloss in rows if "   " not in gloss}
    texts = {node: gloss for node, gloss in glosses.items() if gloss}
    names = {node: name for node, name, _ in rows}
    edges = [
        line.split("\t")
        for split in ("train", "valid", "test")
        for line in lines_of(options.source / f"{split}.tsv.gz")
    ]
    neighbors: Neighbors = defaultdict(set)
    for head, _, tail in edges:
        if head in texts and tail in texts and head != tail:
            neighbors[head].add(tail)
            neighbors[tail].add(head)
    classes = classes_of(texts, edges)
    owners, splits = chosen(neighbors, classes)
    order = sorted(owners)
    random.Random(SEED).shuffle(order)
    ids = {node: str(number) for number, node in enumerate(order)}
    nodes = [
        f"{ids[n]}\t{owners[n]}\t{classes.get(n, '')}\t{splits.get(n, '')}\t{names[n]}\t"
        f"{texts[n]} ({names[n]})"
        for n in order
    ]
    kept = sorted(
        (int(ids[head]), int(ids[tail]))
        for head in owners
        for tail in neighbors[head]
        if owners.get(tail) == owners[head] and int(ids[head]) < int(ids[tail])
    )
    write_gzip(options.out / "nodes.tsv.gz", nodes)
    write_gzip(options.out / "edges.tsv.gz", [f"{head}\t{tail}" for head, tail in kept])
    print(
        len(nodes),
        "nodes,",
        len(kept),
        "edges;",
        Counter((owners[n], s) for n, s in splits.items()),
    )


def classes_of(texts: dict[str, str], edges: list[list[str]]) -> dict[str, str]:
    """Return the class of each node that has exactly one."""
    above: Neighbors = defaultdict(set)
    for head, relation, tail in edges:
        if relation in ("_hypernym", "_instance_hypernym"):
            above[head].add(tail)
    found = {}
    for node in texts:
        seen, waiting = {node}, [node]
        while waiting:
            new = above[waiting.pop()] - seen
            seen |= new
            waiting += new
        held = [name for name, synset in CLASSES.items() if synset in seen]
        if len(held) == 1 and node not in CLASSES.values():
            found[node] = held[0]
    return found


def chosen(neighbors: Neighbors, classes: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the graph of each node that is kept, and the split of each target."""
    candidates = [
        node
        for node in sorted(classes)
        if 2 <= len(neighbors[node]) <= MAX_NEIGHBORS and any(m in classes for m in neighbors[node])
    ]
    random.Random(SEED).shuffle(candidates)
    owners: dict[str, str] = {}
    splits: dict[str, str] = {}
    for graph, quotas in QUOTAS.items():
        places = [split for split, number in quotas.items() for _ in range(number)]
        taken: Counter[str] = Counter()
        for node in candidates:
            around = {node, *neighbors[node]}
            is_free = all(owners.get(other, graph) == graph for other in around)
            if node not in owners and is_free and taken[classes[node]] < len(places):
                splits[node] = places[taken[classes[node]]]
                taken[classes[node]] += 1
                owners |= dict.fromkeys(around, graph)
    return owners, splits


def _shortened(gloss: str) -> str:
    first = re.split(r'[;"]', gloss)[0].replace("`", "").replace("'", "")
    return " ".join(first.split()[:MAX_WORDS])


if __name__ == "__main__":
    main()
