"""What may be bought: offerings and their prices, reservations, limits, and what was spent."""
