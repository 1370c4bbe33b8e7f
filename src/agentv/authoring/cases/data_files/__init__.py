"""Cases from data files: JSON Lines, transcripts, CSV, Excel, Parquet and Arrow files, and Hugging Face datasets."""
