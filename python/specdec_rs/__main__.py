"""`python -m specdec_rs` is `specdec`."""

from specdec_rs.cli.main import main

main()
