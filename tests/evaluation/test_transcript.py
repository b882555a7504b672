from hopling.episode import Answer, Ending, Episode, Observation, Prompt, Task, Turn
from hopling.evaluation.transcript import Example, transcript


def test_each_answer_is_marked_seen_or_not_seen() -> None:
    """BUGS B26: Ann stood in an observation, <Bob> did not; text of a policy is escaped."""
    episode = Episode(Task("t", "Who?", answers=("Ann",)), Prompt("Who?"), ending=Ending.ANSWERED)
    episode.turns.append(Turn("", (), (Observation("Ann", ("m.1",), ("Ann",)),)))
    episode.turns.append(Turn("", (Answer("{Ann}, {<Bob>}"),)))
    page = transcript(Example("SFT", "wrong", episode, {}))
    assert "Ann (seen), &lt;Bob&gt; (not seen)" in page
    episode.ending = Ending.OUT_OF_TURNS
    assert "seen)" not in transcript(Example("SFT", "no answer", episode, {}))
