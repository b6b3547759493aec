"""Sketch generators: strokes as parameters, and the picture they make as a differentiable function of them."""

from humanlike.data.strokes import Strokes
from humanlike.generators.rasterizer import rasterize

__all__ = ["Strokes", "rasterize"]
