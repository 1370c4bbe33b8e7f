"""What an answer is laid against, bounded in time: regular expressions and JSON Schemas."""
