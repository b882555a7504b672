"""Measures how long `import hopling` takes; the goal is 0.3 s of CPU time without torch.

python benchmarks/import_time.py
"""

import statistics
import subprocess
import sys

RUNS = 9
SCRIPT = """
import time
start = time.process_time()
import hopling
print(time.process_time() - start)
"""


def measured_s() -> float:
    """Return the median CPU time of an import in a fresh interpreter."""
    times = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
        )
        times.append(float(done.stdout))
    return statistics.median(times)


if __name__ == "__main__":
    print(f"import hopling: {measured_s():.3f} s of CPU time, median of {RUNS}; goal 0.3 s")
