"""Cases of Parquet, Arrow and Excel files and of datasets, whose columns mean what those of CSV do, and transcripts."""
