"""What people and programs get to see of a run. Renderers are pure: a view in, text out."""
