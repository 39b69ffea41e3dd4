"""Questions with known evidence, measured: which method, which settings, which question fails."""
