"""Assets of score distributions and of a judge's consistency."""
