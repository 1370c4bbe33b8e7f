"""Cases of Parquet, Arrow and Excel files, and of datasets of Hugging Face. Columns mean what those of CSV do."""
