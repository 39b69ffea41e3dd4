"""Values made once and kept, safe for threads: a lazy one, and the most recently used ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from rag_tui.engine.errors import ModelError

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Lazy(Generic[_Value]):
    """A value made once by whoever needs it first; a failure is kept until it is forgotten.

    Args:
        make: Makes the value; anything it raises becomes a `ModelError`.
        value: The value, where it is there already.
    """

    def __init__(self, make: Callable[[], _Value], value: _Value | None = None) -> None:
        self._make = make
        self._lock = Lock()
        self._is_made = value is not None
        self._value = value
        self.error: ModelError | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether `get` answers at once."""
        return self._is_made

    def get(self) -> _Value:
        """The value; who comes second waits for the first.

        Raises:
            ModelError: When it cannot be made, the same one again until `forget`.
        """
        if not self._is_made:
            with self._lock:
                if self.error is not None:
                    raise ModelError(self.error.message, self.error.hint) from self.error
                if not self._is_made:
                    try:
                        self._value = self._make()
                    except ModelError as error:
                        self.error = error
                        raise
                    except Exception as error:  # a broken model folder breaks libraries anywhere
                        self.error = ModelError(
                            f"The model cannot be loaded: {type(error).__name__}: {error}",
                            "Check its folder, or choose another model; `rag-tui doctor` tells "
                            "where models are looked for.",
                        )
                        raise ModelError(self.error.message, self.error.hint) from error
                    self._is_made = True
        return self._value  # type: ignore[return-value]  # None only where _Value allows it

    def forget(self) -> None:
        """Forget a failure, so that the next `get` tries again."""
        with self._lock:
            self.error = None

    def reset(self) -> None:
        """Forget the value as well."""
        with self._lock:
            self.error, self._value, self._is_made = None, None, False


class Recent(Generic[_Key, _Value]):
    """A mapping that keeps the most recently used entries.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """The value, which is now the most recently used one; None when it is not known."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value; the one used longest ago leaves when there are too many."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
