"""How many bytes a piece of work leaves in memory: counted storage by storage, on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, final

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from ppframe.stage import boundary


@final
class LiveMemory:
    """Counts what tensors made under watch still hold, without keeping any of them alive.

    Views count once, with the whole of the storage that they look into. Nothing is missed that an
    operation of torch returns: what autograd saves, what a module puts aside, what B leaves for W.

    Args:
        ignored: tensors whose storages are in memory anyway, such as parameters.
    """

    def __init__(self, ignored: Iterable[Tensor] = ()) -> None:
        self._ignored = {ref.cdata: ref for tensor in ignored for ref in _storage_of(tensor)}
        self._seen: dict[int, tuple[StorageWeakRef, int]] = {}

    def add(self, value: Any) -> None:
        """Count the tensors of a value too, made by somebody else."""
        for tensor in boundary.tensors_of(value):
            self._note(tensor)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what operations return, in the backward too."""
        with _Watch(self._note):
            yield

    def live_bytes(self) -> int:
        """Bytes of the storages that somebody still holds."""
        return sum(size for storage, size in self._seen.values() if not _is_gone(storage))

    def _note(self, tensor: Tensor) -> None:
        for ref in _storage_of(tensor):
            if ref.cdata not in self._ignored:
                self._seen.setdefault(ref.cdata, (ref, tensor.untyped_storage().nbytes()))


@final
class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows each tensor that an operation returns."""

    def __init__(self, show: Callable[[Tensor], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._show = show

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in boundary.tensors_of(result):
            self._show(tensor)
        return result


def _storage_of(tensor: Tensor) -> list[StorageWeakRef]:
    """The tensor's storage, as long as it is there; nothing for tensors that have none, as sparse.

    The address of a storage isn't given to another one before the last reference to it is gone,
    weak ones included, so it can serve as its name.
    """
    with suppress(NotImplementedError):
        return [StorageWeakRef(tensor.untyped_storage())]  # type: ignore[no-untyped-call]
    return []


def _is_gone(storage: StorageWeakRef) -> bool:
    return bool(storage.expired())  # type: ignore[no-untyped-call]
