"""Commonsense elements: the visible parts that a drawing of a thing may show, and which of them it does show."""
