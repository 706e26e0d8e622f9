"""KI (Wizard101): type lists, game objects and archives, and a headless client with asyncio.

    types = TypeList("types.json")
    for name, data in Archive("Root.wad").files("ObjectData/**"):
        print(name, types.decode(data))
"""

from __future__ import annotations

from ._lazy import attributes
from ._native import Archive, GameObject, TypeList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._errors import Refused as Refused
    from ._ki_client import Character as Character
    from ._ki_client import Client as Client
    from ._ki_client import Login as Login
    from ._ki_client import Zone as Zone
    from ._types import ObjectError as ObjectError
else:
    # Programs that only read files do not wait until asyncio is imported.
    __getattr__, __dir__ = attributes(
        __name__,
        {
            "_errors": ["Refused"],
            "_ki_client": ["Character", "Client", "Login", "Zone"],
            "_types": ["ObjectError"],
        },
    )

__all__ = [
    "Archive",
    "Character",
    "Client",
    "GameObject",
    "Login",
    "ObjectError",
    "Refused",
    "TypeList",
    "Zone",
]
