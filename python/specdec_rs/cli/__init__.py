"""The command line, one file a verb. Data goes to stdout, everything else to stderr."""
