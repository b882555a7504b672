"""Log-probabilities of many sequences that share their beginnings, each shared token read once.

The sequences become a tree of tokens: a token attends to those on its way to the root, and its
position is its depth. One forward pass scores every branch, and it gives what a pass over each
sequence alone would give. [CNY 5.7, done cheaper]

Shapes: B trees, N tokens of a tree, P places scored, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from peft import PeftModel
from transformers import PreTrainedModel

MAX_TREE_TOKENS = 4096  # of one tree; its mask has the square of it
MAX_FORWARD_TOKENS = 16384  # of one forward pass, padding included
SHARED = 0.5  # of a sequence, for it to join a tree rather than begin one


@dataclass(frozen=True)
class SpanScores:
    """Log-probabilities for each sequence's span, and how many tokens were read for them."""

    logprobs: list[list[float]]
    tokens: int


@dataclass
class _Tree:
    """Tokens with their parents; a parent stands before its children."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    children: dict[tuple[int, int], int] = field(default_factory=dict)
    members: list[tuple[int, list[int]]] = field(default_factory=list)

    def shared(self, sequence: Sequence[int]) -> int:
        """Return how many of the sequence's first tokens the tree holds already."""
        place = -1
        for number, token in enumerate(sequence):
            place = self.children.get((place, token), -2)
            if place == -2:
                return number
        return len(sequence)

    def add(self, member: int, sequence: Sequence[int]) -> None:
        """Add a sequence and note the place of each of its tokens."""
        places: list[int] = []
        place = -1
        for depth, token in enumerate(sequence):
            child = self.children.get((place, token))
            if child is None:
                child = len(self.tokens)
                self.tokens.append(token)
                self.parents.append(place)
                self.depths.append(depth)
                self.children[place, token] = child
            places.append(child)
            place = child
        self.members.append((member, places))


def span_logprobs(
    model: PreTrainedModel | PeftModel,
    sequences: Sequence[Sequence[int]],
    spans: Sequence[tuple[int, int]],
) -> SpanScores:
    """Return the log-probability of each sequence's tokens in its span, given all before them.

    A span begins behind the first token, since nothing stands before that. Gradients are off.
    """
    assert all(0 < start <= end for start, end in spans)
    result: list[list[float]] = [[] for _ in sequences]
    # the last token of a span is scored, not read
    read = [list(s[: end - 1]) for s, (_, end) in zip(sequences, spans, strict=True)]
    trees = _trees([i for i in range(len(read)) if spans[i][0] < spans[i][1]], read)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in _batches(trees):
                wanted = [
                    [
                        (places[t - 1], sequences[member][t], member)
                        for member, places in tree.members
                        for t in range(*spans[member])
                    ]
                    for tree in batch
                ]
                for member, value in _forward(model, batch, wanted):
                    result[member].append(value)
    finally:
        model.train(was_training)
    return SpanScores(result, sum(len(tree.tokens) for tree in trees))


def _trees(members: Sequence[int], sequences: Sequence[list[int]]) -> list[_Tree]:
    trees: list[_Tree] = []
    for member in sorted(members, key=lambda i: sequences[i]):
        sequence = sequences[member]
        num_shared = trees[-1].shared(sequence) if trees else 0
        size = len(trees[-1].tokens) + len(sequence) - num_shared if trees else 0
        if num_shared < SHARED * len(sequence) or size > MAX_TREE_TOKENS or not trees:
            trees.append(_Tree())
        trees[-1].add(member, sequence)
    return trees


def _batches(trees: Sequence[_Tree]) -> list[list[_Tree]]:
    batches: list[list[_Tree]] = []
    for tree in sorted(trees, key=lambda tree: len(tree.tokens)):
        # sorted, so this tree is the widest of its batch
        if not batches or len(tree.tokens) * (len(batches[-1]) + 1) > MAX_FORWARD_TOKENS:
            batches.append([])
        batches[-1].append(tree)
    return batches


def _forward(
    model: PreTrainedModel | PeftModel,
    trees: Sequence[_Tree],
    wanted: Sequence[Sequence[tuple[int, int, int]]],
) -> list[tuple[int, float]]:
    """Return (member, log-probability) for each (place, token that follows, member) wanted."""
    device, dtype = next(model.parameters()).device, next(model.parameters()).dtype
    width = max(len(tree.tokens) for tree in trees)
    ids_BN, depths_BN = (np.zeros((len(trees), width), dtype=np.int64) for _ in range(2))
    seen_BNN = np.zeros((len(trees), width, width), dtype=bool)
    for b, tree in enumerate(trees):
        ids_BN[b, : len(tree.tokens)] = tree.tokens
        depths_BN[b, : len(tree.tokens)] = tree.depths
        for place, parent in enumerate(tree.parents):
            if parent >= 0:
                seen_BNN[b, place] = seen_BNN[b, parent]
            seen_BNN[b, place, place] = True
    # the lowest number rather than -inf: padding sees nothing, and must not become NaN
    mask_B1NN = torch.zeros(seen_BNN.shape, dtype=dtype).masked_fill_(
        ~torch.from_numpy(seen_BNN), torch.finfo(dtype).min
    )[:, None]
    columns = sorted({place for row in wanted for place, _, _ in row})
    logits_BPV = model(
        input_ids=torch.from_numpy(ids_BN).to(device),
        position_ids=torch.from_numpy(depths_BN).to(device),
        attention_mask=mask_B1NN.to(device),
        use_cache=False,
        logits_to_keep=torch.tensor(columns, device=device),
    ).logits
    where = {place: p for p, place in enumerate(columns)}
    rows = [(b, where[place], token) for b, row in enumerate(wanted) for place, token, _ in row]
    b_R, p_R, token_R = torch.tensor(rows, device=device).T
    logprobs_RV = logits_BPV[b_R, p_R].float().log_softmax(dim=-1)
    values = logprobs_RV.gather(1, token_R[:, None])[:, 0].tolist()
    return list(zip((member for row in wanted for _, _, member in row), values, strict=True))
