"""Reports for people and programs. Renderers are pure: a view in, text out."""
