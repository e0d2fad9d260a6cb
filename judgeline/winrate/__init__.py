"""Win rates: estimates from judge and labels, their intervals, and how many labels to buy."""
