"""KI (Wizard101): type lists, game objects and archives."""

from ._native import Archive, GameObject, TypeList

__all__ = ["Archive", "GameObject", "TypeList"]
