"""Questions written without a model: triples that lead from document to document, in words.

A chain takes one triple of each document of a path: `Kismet - directed by - Ann Lee` of the first,
`Ann Lee - wrote - Low` of the second. The question names where the chain begins and its relations:
"Kismet directed by X, and X wrote Y. What is Y?". A query is what a reader knows by then.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random

from hopling.data.drafts import Draft, Drafts, Rejected, broken_rule, holds
from hopling.data.paths import Path
from hopling.graphs.documents import DocumentGraph

VARIABLES = "XYZWVUTSRQ"
_MOST_CHAINS = 50  # tried for one path
_NO_CHAIN = "no triples lead from document to document"


@dataclass(frozen=True)
class _Step:
    """A triple, read from the entity that is known to the one that it tells."""

    known: str
    relation: str
    told: str
    forward: bool

    def __str__(self) -> str:
        return self.written(self.known, self.told)

    def written(self, known: str, told: str = "") -> str:
        """Return the triple in words, with these names for its ends."""
        words = (known, self.relation, told) if self.forward else (told, self.relation, known)
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Templates:
    """Writes a question for each path of a graph; equal paths and seeds give equal questions.

    `backward` says whether triples are read from their end, too. Triples whose relation is in
    `vague` say nothing that can be asked.
    """

    graph: DocumentGraph
    backward: bool = True
    vague: tuple[str, ...] = ("mentioned with",)  # of extract_spacy
    seed: int = 0

    def __call__(self, paths: Sequence[Path]) -> Drafts:
        """Return a draft for each path, or why there is none."""
        return [self._draft(path) for path in paths]

    def _draft(self, path: Path) -> Draft | Rejected:
        if len(path.documents) > len(VARIABLES):
            return Rejected(f"more than {len(VARIABLES)} documents")
        rng = Random(f"{self.seed}/{path.id}")
        broken: Counter[str] = Counter()
        for chain in islice(self._chains(path, rng), _MOST_CHAINS):
            if not all(map(self._is_only, chain)):
                broken["a triple has several answers"] += 1
                continue
            draft = self._written(path, chain)
            rule = broken_rule(draft, self.graph.document)
            if rule is None:
                return draft
            broken[rule] += 1
        return Rejected(broken.most_common(1)[0][0] if broken else _NO_CHAIN)

    def _chains(self, path: Path, rng: Random) -> Iterator[list[_Step]]:
        """Yield chains of one step in each document, in a random order."""
        joined = [self._joints(path, place) for place in range(len(path.links))]

        def grown(chain: list[_Step]) -> Iterator[list[_Step]]:
            place = len(chain)
            if place == len(path.documents):
                yield chain
                return
            steps = self._steps(path.documents[place])
            if chain:
                known = {entry for told, entry in joined[place - 1] if told == chain[-1].told}
                steps = [step for step in steps if step.known in known]
            if place < len(joined):
                leaving = {told for told, _ in joined[place]}
                steps = [step for step in steps if step.told in leaving]
            before = {end for step in chain for end in (step.known, step.told)}
            steps = [step for step in steps if step.told not in before]
            for step in rng.sample(steps, len(steps)):
                yield from grown([*chain, step])

        return grown([])

    def _joints(self, path: Path, place: int) -> list[tuple[str, str]]:
        """Return pairs of entities by which one may go on from a document to the next.

        Two that differ are the link of the path, where only their names differ: a relation would
        have to be told by a document that is not of the path.
        """
        here, there = (self.graph.entities_of(d) for d in path.documents[place : place + 2])
        pairs = [(entity, entity) for entity in here if entity in set(there)]
        link = path.links[place]
        if len(link) == 2 and not set(self.graph.documents_of(link[0])) & set(
            self.graph.documents_of(link[1])
        ):
            pairs.append((link[0], link[1]))
        return pairs

    def _steps(self, document: str) -> list[_Step]:
        steps = []
        for head, relation, tail in self.graph.triples_of(document):
            if head != tail and relation.strip() and relation.strip() not in self.vague:
                steps.append(_Step(head, relation.strip(), tail, forward=True))
                if self.backward:
                    steps.append(_Step(tail, relation.strip(), head, forward=False))
        return steps

    def _is_only(self, step: _Step) -> bool:
        """Return whether no other document tells another end for the same beginning."""
        told = self._told.get((step.known, step.relation.casefold(), step.forward), set())
        return told == {step.told}

    @cached_property
    def _told(self) -> dict[tuple[str, str, bool], set[str]]:
        found: dict[tuple[str, str, bool], set[str]] = {}
        for document in self.graph.documents:
            for step in self._steps(document.id):
                key = (step.known, step.relation.casefold(), step.forward)
                found.setdefault(key, set()).add(step.told)
        return found

    def _written(self, path: Path, chain: Sequence[_Step]) -> Draft:
        letters = VARIABLES[: len(chain)]
        names = [self._name(step.told, path.documents[k]) for k, step in enumerate(chain)]
        start = self._name(chain[0].known, path.documents[0])
        clauses = [
            step.written(letters[k - 1] if k else start, letters[k]) for k, step in enumerate(chain)
        ]
        known = [start, *names[:-1]]
        told = [f"{step.written(*ends)}." for step, *ends in zip(chain, known, names, strict=True)]
        last = self._forms(chain[-1].told)
        return Draft(
            path.id,
            f"{', and '.join(clauses)}. What is {letters[-1]}?",
            tuple(dict.fromkeys([names[-1], *last])),
            path.documents,
            tuple(step.written(name) for step, name in zip(chain, known, strict=True)),
            ("", *told),
        )

    def _name(self, entity: str, document: str) -> str:
        """Return the form of an entity's name that a document has."""
        found = self.graph.document(document)
        forms = self._forms(entity)
        text = f"{found.title}\n{found.text}"
        return next((form for form in forms if holds(text, form)), forms[0])

    def _forms(self, entity: str) -> list[str]:
        (found,) = [one for one in self.graph.find(entity) if one.id == entity]
        return [form for form, _ in found.aliases] or [entity]
