"""Readers made from declarations: nodes in, frozen options out."""
