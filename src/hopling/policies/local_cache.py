"""Keys and values of rows of tokens, kept from turn to turn.

Shapes: B rows, H heads, S columns, D head size, Q new columns. A row's tokens need not stand in
neighboring columns: positions are given to the model explicitly, so a column may be a hole.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

SPARE_COLUMNS = 64


class GrowingLayer(DynamicLayer):
    """A layer's keys and values in a buffer with spare columns, so that a token copies nothing."""

    def __init__(
        self, buffers: tuple[torch.Tensor, torch.Tensor] | None = None, *, num_columns: int = 0
    ) -> None:
        super().__init__()
        self.num_columns = num_columns
        if buffers is not None:
            self.key_buffer_BHSD, self.value_buffer_BHSD = buffers
            self.is_initialized = True
            self._show(num_columns)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the new columns and return all of them."""
        start, end = self.num_columns, self.num_columns + key_states.shape[2]
        if not self.is_initialized:
            self.key_buffer_BHSD, self.value_buffer_BHSD = key_states, value_states
            self.is_initialized = True
        else:
            if end > self.key_buffer_BHSD.shape[2]:
                num_columns = end + max(SPARE_COLUMNS, end // 4)
                self.key_buffer_BHSD = _widened(self.key_buffer_BHSD, start, num_columns)
                self.value_buffer_BHSD = _widened(self.value_buffer_BHSD, start, num_columns)
            self.key_buffer_BHSD[:, :, start:end] = key_states
            self.value_buffer_BHSD[:, :, start:end] = value_states
        return self._show(end)

    def get_seq_length(self) -> int:
        """Return the number of columns in use."""
        return self.num_columns

    def _show(self, num_columns: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.num_columns = num_columns
        self.keys = keys = self.key_buffer_BHSD[:, :, :num_columns]
        self.values = values = self.value_buffer_BHSD[:, :, :num_columns]
        return keys, values


class KeyValues:
    """A batch of rows: one `GrowingLayer` for each layer, and which columns hold a token."""

    def __init__(self, layers: Sequence[GrowingLayer], valid_BS: torch.Tensor) -> None:
        self.layers = tuple(layers)
        self.cache = Cache(layers=[*layers])
        self.valid_BS = valid_BS

    @classmethod
    def empty(cls, num_rows: int, *, num_layers: int, device: torch.device) -> "KeyValues":
        """Return rows without a token."""
        valid = torch.zeros(num_rows, 0, dtype=torch.bool, device=device)
        return cls([GrowingLayer() for _ in range(num_layers)], valid)

    @property
    def counts_B(self) -> torch.Tensor:
        """The number of tokens in each row."""
        return self.valid_BS.sum(dim=1)

    def take(self, rows: torch.Tensor, *, spare: int = 0) -> "KeyValues":
        """Return copies of the rows, without the columns that are holes in all of them.

        `spare` is how many columns can be appended without another copy.
        """
        valid_BS = self.valid_BS[rows]
        width = int(valid_BS.sum(dim=1).max())
        # a stable sort moves the holes to the left and keeps the tokens in order
        order_BS = valid_BS.to(torch.uint8).sort(dim=1, stable=True).indices[:, -width:]
        wide_BS = torch.nn.functional.pad(order_BS, (0, spare))
        layers = []
        for layer in self.layers:
            keys = _picked(layer.key_buffer_BHSD, rows, wide_BS)
            values = _picked(layer.value_buffer_BHSD, rows, wide_BS)
            layers.append(GrowingLayer((keys, values), num_columns=width))
        return KeyValues(layers, valid_BS.gather(1, order_BS))


def joined(parts: Sequence[KeyValues], *, spare: int = 0) -> KeyValues:
    """Return the rows of all parts, one below the other, with `spare` columns to append to."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.valid_BS.shape[1] for part in parts)
    layers = []
    for stack in zip(*(part.layers for part in parts), strict=True):
        keys = _stacked([layer.keys for layer in stack], width, spare)
        values = _stacked([layer.values for layer in stack], width, spare)
        layers.append(GrowingLayer((keys, values), num_columns=width))
    pad = torch.nn.functional.pad
    valid = [pad(part.valid_BS, (width - part.valid_BS.shape[1], 0)) for part in parts]
    return KeyValues(layers, torch.cat(valid))


def _stacked(tensors: Sequence[torch.Tensor], width: int, spare: int) -> torch.Tensor:
    _, num_heads, _, size = tensors[0].shape
    num_rows = sum(len(tensor) for tensor in tensors)
    buffer_BHSD = tensors[0].new_empty(num_rows, num_heads, width + spare, size)
    start = 0
    for tensor in tensors:
        rows = buffer_BHSD[start : start + len(tensor)]
        # zeros, since a NaN in a hole would pass through the attention's weight of 0
        rows[:, :, : width - tensor.shape[2]] = 0
        rows[:, :, width - tensor.shape[2] : width] = tensor
        start += len(tensor)
    return buffer_BHSD


def _picked(buffer_BHSD: torch.Tensor, rows: torch.Tensor, order_BS: torch.Tensor) -> torch.Tensor:
    _, num_heads, capacity, size = buffer_BHSD.shape
    heads = torch.arange(num_heads, device=rows.device)
    starts_BH = (rows[:, None] * num_heads + heads) * capacity
    flat = starts_BH[:, :, None] + order_BS[:, None, :]
    picked = buffer_BHSD.reshape(-1, size).index_select(0, flat.reshape(-1))
    return picked.view(*flat.shape, size)


def _widened(buffer_BHSD: torch.Tensor, used: int, num_columns: int) -> torch.Tensor:
    num_rows, num_heads, _, size = buffer_BHSD.shape
    wider = buffer_BHSD.new_empty(num_rows, num_heads, num_columns, size)
    wider[:, :, :used] = buffer_BHSD[:, :, :used]
    return wider
