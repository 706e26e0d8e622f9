"""KI (Wizard101): type lists and game objects."""

from ._native import GameObject, TypeList

__all__ = ["GameObject", "TypeList"]
