"""Everything outside the process: corpora, judges, stores, declared tables."""
