"""Cases for the golden reference: data for both sides, and the comparison of their results."""
