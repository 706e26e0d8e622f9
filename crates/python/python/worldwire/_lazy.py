"""Modules that import some of their contents only when they are used.

`import worldwire` then takes a fraction of the time that Python needs to start. It imports neither
asyncio nor typing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence


def attributes(
    name: str, sources: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module that takes names from others in this package.

    `sources` maps modules to names. A module itself is also available by its name, unless that
    begins with an underscore.
    """
    source_of = {it: source for source, names in sources.items() for it in names}
    modules = {source for source in sources if not source.startswith("_")}
    package = __name__.rpartition(".")[0]

    def get(wanted: str) -> Any:
        source = source_of.get(wanted, wanted if wanted in modules else None)
        if source is None:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        from importlib import import_module

        module = import_module(f"{package}.{source}")
        value = getattr(module, wanted) if wanted in source_of else module
        # Next time, Python finds it without this function.
        setattr(sys.modules[name], wanted, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[name]), *source_of, *modules})

    return get, listed
