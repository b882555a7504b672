"""What torch has to work with on this machine."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Gpu:
    """A GPU's name and memory."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Torch:
    """torch's version, the threads of one operation, and the GPUs that it can use."""

    version: str
    threads: int
    gpus: tuple[Gpu, ...]


def describe_torch() -> Torch:
    """Return what torch says of itself and of the machine."""
    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    found = tuple(Gpu(gpu.name, gpu.total_memory) for gpu in gpus)
    return Torch(str(torch.__version__), torch.get_num_threads(), found)
