"""Find the files that user code consists of, whose content is part of the keys of answers and grades."""
