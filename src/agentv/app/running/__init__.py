"""Running a prepared plan: start, execution, records and summary."""
