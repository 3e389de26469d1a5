"""What live objects say: tables of states by family of kinds, and the tests that read them."""
