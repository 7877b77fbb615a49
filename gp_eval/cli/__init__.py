"""The command line ``gp-eval``, a thin layer over the library."""
