"""TERA: a headless asyncio client, definitions and maps.

    async with Client("127.0.0.1", 7801, data="tera-data/") as client:
        client.send("C_CHAT", {"channel": 0, "message": "Hello!"})
        async for event in client:
            print(event.name, event.fields)
"""

from __future__ import annotations

from typing import Union

from ._link import Link
from ._native import Context, TeraCatalog
from ._types import Paths
from .connection import Connection

__all__ = ["Client", "TeraCatalog"]


class Client(Link):
    """A connection to a server or to `worldwire proxy tera`. Iterate over it to receive messages that no
    other call is waiting for.

    `data` names definitions and maps for the server's build, or is a context that contains them. Messages
    are named as in the map. A message without a definition has its opcode and payload as fields.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        data: Union[Paths, Context],
        patience: float = 30.0,
    ) -> None:
        super().__init__(host, port, patience)
        self._context = data if isinstance(data, Context) else Context(data=data)

    def _connect(self) -> Connection:
        return Connection.tera("client", context=self._context)

    async def open(self) -> None:
        """Connect and exchange keys."""
        await super().open()
        await self._set_up("exchange keys")
