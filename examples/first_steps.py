"""First steps: the movie graph, the tool that searches it, an episode and its reward.

The policy here is a script; a trained model takes its place by `LocalModel.load(folder)`.
It prints:

    | property | propertyLabel | value | valueLabel |
    |---|---|---|---|
    | directed_by | directed by | m.17418 | Carol Reed |
    answered, reward 1.0
"""

from hopling import Environment, Task, rollout
from hopling.data.tasks import movie_files
from hopling.dialects import ToolCalls, chat
from hopling.graphs import HopIndex, build_index
from hopling.policies.scripted import Scripted
from hopling.rewards import sog_r1
from hopling.tools import OneHopSearch

triples, names = movie_files()
build_index(triples, "movies", labels=names)
graph = HopIndex.open("movies")
(film,) = graph.find("The Third Man", limit=1)
task = Task("t1", "Who directed The Third Man?", start=(film,), answers=("Carol Reed",))
search, dialect = OneHopSearch(graph), ToolCalls(chat.compact)
world = Environment(lambda task: task.question, (search,), dialect, max_turns=4)
policy = Scripted({"t1": [f"out {film} : directed_by", "Final answer: {Carol Reed}"]})
(episode,) = rollout(policy, world, [task])
print(episode.turns[0].observation.text)
print(f"{episode.ending.value}, reward {sog_r1(free_calls=1)(episode)}")
