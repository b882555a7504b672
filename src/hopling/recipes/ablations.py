"""GTA-RAG's ablations: each changes one of world, tasks and reward. [GTA-RAG 4.3]"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from hopling.environment import Environment
from hopling.episode import Episode, Task
from hopling.graphs.documents import DocumentGraph
from hopling.recipes.trajectories import Material
from hopling.rewards.squad import squad_em
from hopling.tools import Retrieve

Ablation = Literal["tgr", "tv", "gr"]  # trajectory reward, validation, graph retrieval
Scorer = Callable[[Episode], float]


def ablated(
    name: str, world: Environment, made: Material, reward: Scorer
) -> tuple[Environment, tuple[Task, ...], Scorer]:
    """Return world, tasks and reward of stage I, of which an ablation changes one.

    Without graph retrieval as many documents are found by their text. [GTA-RAG 4.3, Table 2]
    """
    if name == "gr":
        (search,) = world.tools
        assert isinstance(search, Retrieve)
        assert isinstance(search.retriever, DocumentGraph)
        how = search.retriever.retrieval
        text = replace(how, num_graph=0, num_passages=how.num_graph + how.num_passages)
        blind = replace(search, retriever=replace(search.retriever, retrieval=text))
        return replace(world, tools=(blind,)), made.train, reward
    tasks = made.unvalidated if name == "tv" else made.train
    return world, tasks, squad_em if name == "tgr" else reward
