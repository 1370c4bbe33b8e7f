"""Reports for people and programs. Renderers are pure functions from a view to text."""
