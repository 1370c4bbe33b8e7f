"""Assertions on the format of an answer: JSON, XML, HTML, SQL."""
