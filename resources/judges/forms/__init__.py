"""What a judge may be asked: the rubric, one score, or a choice; how each is put and read."""
