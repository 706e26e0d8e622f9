"""TERA: definitions and maps."""

from ._native import TeraCatalog

__all__ = ["TeraCatalog"]
