"""Everything outside the process: corpora, judges, tables, reports."""
