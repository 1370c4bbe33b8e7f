"""What confines the programs of a trial."""
